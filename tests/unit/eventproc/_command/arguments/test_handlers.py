"""``module:Handler`` arguments: what is found, and the errors for what is not."""

import sys
import textwrap

import pytest

from eventproc import PartitionHandler
from eventproc._command.arguments.modules import load_handler
from eventproc.errors import ConfigurationError

MODULE = """
from eventproc import PartitionHandler

class Good(PartitionHandler):
    pass

class Outer:
    class Inner(PartitionHandler):
        pass

class OfNoHandlerClass:
    pass

def factory():
    return Good()

number = 5
one = Good()
"""


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    """Change to a folder with modules in it, and remove them from ``sys.modules`` afterwards."""
    (tmp_path / "shop_handlers.py").write_text(MODULE)
    (tmp_path / "shop_broken.py").write_text("1 / 0")
    (tmp_path / "shop_needy.py").write_text("import a_package_that_is_missing")
    (tmp_path / "shop_empty.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("shop_")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["Good", "Outer.Inner"])
def test_a_class_in_the_current_folder_is_found(folder, name):
    """Without installing anything. It may be an inner class."""
    loaded = load_handler(f"shop_handlers:{name}")

    assert isinstance(loaded, type)
    assert issubclass(loaded, PartitionHandler)


def test_a_function_that_makes_handlers_is_accepted(folder):
    """For handlers that need arguments."""
    assert isinstance(load_handler("shop_handlers:factory")(), PartitionHandler)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("orders", "give MODULE:CLASS"),
        (":Good", "give MODULE:CLASS"),
        ("shop_absent:Good", "there is no module 'shop_absent': run this in the folder"),
        ("shop_absent.deep:Good", "there is no module 'shop_absent.deep'"),
        (
            "shop_handlers.py:Good",
            "give shop_handlers, and run this in the folder of shop_handlers.py",
        ),
        (
            "./shop_handlers.py:Good",
            "give shop_handlers, and run this in the folder of shop_handlers.py",
        ),
        ("shops/orders:Good", "'shops/orders' is a path"),
        ("shop_broken:Good", "cannot be imported: ZeroDivisionError"),
        ("shop_needy:Good", "imports 'a_package_that_is_missing', which is not installed"),
        ("shop_handlers:Goood", "has no 'Goood'; it has Good"),
        ("shop_empty:Good", "has no 'Good'; it has no handler class at all"),
        ("shop_handlers:OfNoHandlerClass", "let it inherit from eventproc.PartitionHandler"),
        ("shop_handlers:number", "is int, not a handler"),
        ("shop_handlers:one", "every partition needs its own: name its class"),
    ],
)
def test_an_argument_that_names_no_handler_is_refused_with_the_remedy(folder, spec, message):
    """The message repeats the argument and says what to do."""
    with pytest.raises(ConfigurationError) as refused:
        load_handler(spec)

    assert message in textwrap.shorten(str(refused.value), 400)
