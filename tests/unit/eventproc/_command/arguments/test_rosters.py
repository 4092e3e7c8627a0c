"""``--roster`` as text."""

import asyncio

import pytest

from eventproc import ConfigurationError
from eventproc._command.arguments.modules import check_supervised, make_roster

MODULE = """
from eventproc import FixedRoster, Roster

class Mine(FixedRoster):
    def __init__(self):
        super().__init__(["a", "b"], own_id="b")

class Needy(FixedRoster):
    pass

ready = FixedRoster(["c"], own_id="c")
number = 7
"""


@pytest.fixture(name="module", autouse=True)
def _module(tmp_path, monkeypatch):
    (tmp_path / "machines_of_test_rosters.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("POD_NAME", "consumer-3")


@pytest.mark.parametrize(
    ("text", "kind", "own_id"),
    [
        ("statefulset", "StatefulSetRoster", "consumer-3"),
        ("replicaset", "ReplicaSetRoster", "consumer-3"),
        ("machines_of_test_rosters:Mine", "Mine", "b"),
        ("machines_of_test_rosters:ready", "FixedRoster", "c"),
    ],
)
def test_a_text_names_a_roster(text, kind, own_id):
    """One of Kubernetes, a class or an instance."""
    roster = make_roster(text)

    assert roster
    assert (type(roster).__name__, roster.own_id) == (kind, own_id)


def test_refusals_of_kubernetes_say_what_helps_on_the_command_line_too(monkeypatch):
    """Set a variable, or name a roster of one's own."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
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
        ("machines_of_test_rosters:number", "this is no roster"),
        ("machines_of_test_rosters:missing", "has no 'missing'"),
        ("machines_of_test_rosters:Needy", "cannot be called without arguments"),
        ("no_such_module:Mine", "there is no module 'no_such_module'"),
    ],
)
def test_a_text_that_names_no_roster_is_refused(text, message):
    """The message says what is possible."""
    with pytest.raises(ConfigurationError, match=message):
        make_roster(text)


def test_a_missing_extra_of_a_roster_is_named(tmp_path):
    """The message has the command that installs it, not only the module's name."""
    (tmp_path / "needy_of_test_rosters.py").write_text(
        "from eventproc._base.extras import needing\n"
        "with needing('kubernetes'):\n"
        "    import no_such_client\n",
        "utf-8",
    )
    with pytest.raises(ConfigurationError, match=r"pip install 'eventproc\[kubernetes\]'"):
        make_roster("needy_of_test_rosters:Mine")


@pytest.mark.parametrize("text", ["statefulset", "replicaset"])
def test_a_roster_of_pods_is_refused_where_a_pod_has_several_members(text):
    """The message says what to do instead."""
    with pytest.raises(ConfigurationError, match=f"--roster {text} has the names of pods.*leave"):
        check_supervised(text)


@pytest.mark.parametrize("text", ["", "machines_of_test_rosters:Mine"])
def test_workers_may_have_a_roster_of_the_users_or_none(text):
    """It may name each worker."""
    check_supervised(text)
