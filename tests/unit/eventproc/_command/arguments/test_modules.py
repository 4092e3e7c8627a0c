"""What options name as module:name: handlers, placements and rosters, and the errors for others."""

import asyncio
import sys
import textwrap

import pytest

from eventproc import ConfigurationError, PartitionHandler
from eventproc._command.arguments.modules import load_handler, make_roster, parse_placement
from eventproc._command.workers.process import ProcessOptions
from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.published import Published
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc._group.config import GroupConfig

HANDLERS = """
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
    (tmp_path / "shop_handlers.py").write_text(HANDLERS)
    (tmp_path / "shop_placements.py").write_text(PLACEMENTS)
    (tmp_path / "shop_rosters.py").write_text(ROSTERS)
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


PLACEMENTS = """
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


ROSTERS = """
from eventproc import FixedRoster, Roster

class Mine(FixedRoster):
    def __init__(self):
        super().__init__(["a", "b"], own_id="b")

class Needy(FixedRoster):
    pass

ready = FixedRoster(["c"], own_id="c")
number = 7
"""


@pytest.mark.parametrize(
    ("text", "kind", "own_id"),
    [
        ("statefulset", "StatefulSetRoster", "consumer-3"),
        ("replicaset", "ReplicaSetRoster", "consumer-3"),
        ("shop_rosters:Mine", "Mine", "b"),
        ("shop_rosters:ready", "FixedRoster", "c"),
    ],
)
def test_a_text_names_a_roster(folder, monkeypatch, text, kind, own_id):
    """One of Kubernetes, a class or an instance."""
    monkeypatch.setenv("POD_NAME", "consumer-3")
    roster = make_roster(text)

    assert roster
    assert (type(roster).__name__, roster.own_id) == (kind, own_id)


def test_refusals_of_kubernetes_say_what_helps_on_the_command_line_too(monkeypatch):
    """Set a variable, or name a roster of one's own."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("POD_NAME", "consumer-3")
    roster = make_roster("statefulset")
    assert roster is not None
    with pytest.raises(ConfigurationError) as outside:
        asyncio.run(roster.open())
    monkeypatch.setenv("POD_NAME", "laptop")
    with pytest.raises(ConfigurationError) as unnumbered:
        make_roster("statefulset")

    assert str(outside.value).endswith(
        "Run in a pod whose ServiceAccount mounts a token, or make the roster with "
        "kubeconfig=PATH of a file of kubectl"
    )
    assert str(unnumbered.value) == (
        "pod_name is 'laptop': this is no name of a StatefulSet's pod, such as 'consumer-0': set "
        "the environment variable POD_NAME from the field metadata.name"
    )


def test_no_text_is_no_roster():
    """The group then shares among those that are there."""
    assert make_roster("") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pods", "this is no roster: give statefulset or replicaset, or MODULE:NAME"),
        ("shop_rosters:number", "this is no roster"),
        ("shop_rosters:missing", "has no 'missing'"),
        ("shop_rosters:Needy", "cannot be called without arguments"),
        ("no_such_module:Mine", "there is no module 'no_such_module'"),
    ],
)
def test_a_text_that_names_no_roster_is_refused(folder, text, message):
    """The message says what is possible."""
    with pytest.raises(ConfigurationError, match=message):
        make_roster(text)


def test_a_missing_extra_of_a_roster_is_named(folder):
    """The message has the command that installs it, not only the module's name."""
    (folder / "shop_extra.py").write_text(
        "from eventproc._base.extras import needing\n"
        "with needing('kubernetes'):\n"
        "    import no_such_client\n",
        "utf-8",
    )
    with pytest.raises(ConfigurationError, match=r"pip install 'eventproc\[kubernetes\]'"):
        make_roster("shop_extra:Mine")


@pytest.mark.parametrize("text", ["statefulset", "replicaset"])
def test_a_roster_of_pods_is_refused_where_a_pod_has_several_members(text):
    """The message says what to do instead."""
    options = ProcessOptions(workers=2, roster=text)
    with pytest.raises(ConfigurationError, match=f"--roster {text} has the names of pods.*leave"):
        options.supervise(GroupConfig())
