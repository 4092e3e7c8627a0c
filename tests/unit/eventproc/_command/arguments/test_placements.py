"""Placements as text: which are found, and the errors for what is none."""

import sys

import pytest

from eventproc._command.arguments.modules import parse_placement
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.published import Published
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc.errors import ConfigurationError

MODULE = """
from eventproc._core.placement.even import Even

class Own(Even):
    pass

class Nest:
    class Inner(Even):
        pass

class Needy(Even):
    def __init__(self, size):
        pass

one = Own()
number = 5
"""


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    """Change to a folder with a module in it, and remove that from ``sys.modules`` afterwards."""
    (tmp_path / "shop_placements.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("shop_placements", None)


@pytest.mark.parametrize(
    "placement",
    [
        Even(),
        Weighted(),
        Ring(bound=1.25),
        Ring(literal=True),
        Ordinal(replicas=4, literal=True),
        Published(Ring()),
    ],
    ids=lambda placement: placement.name,
)
def test_the_name_of_each_placement_is_its_text(placement):
    """With its settings."""
    assert parse_placement("--placement", placement.name) == placement


@pytest.mark.parametrize("name", ["Own", "Nest.Inner", "one"])
def test_a_class_or_an_instance_in_the_current_folder_is_found(folder, name):
    """A class is called without arguments."""
    found = parse_placement("--placement", f"shop_placements:{name}")
    published = parse_placement("--placement", f"Published:shop_placements:{name}")

    assert isinstance(found, Even)
    assert isinstance(published, Published)
    assert type(published.inner) is type(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Evn", "use one of Even, Weighted, Ordinal, Ring"),
        ("Ring:bond=2", "its settings are: backups, bound, literal"),
        ("Ring:bound=0.5", "bound is 0.5"),
        ("shop_missing:Own", "no module 'shop_missing'"),
        ("shop_placements:Gone", "--placement is 'shop_placements:Gone': module .* has no 'Gone'"),
        ("shop_placements:number", "--placement is 'shop_placements:number': this is no placem"),
        ("shop_placements:Needy", "name an instance of it instead"),
    ],
)
def test_another_text_is_an_error_with_the_remedy(folder, text, message):
    """It names what was given."""
    with pytest.raises(ConfigurationError, match=message):
        parse_placement("--placement", text)
