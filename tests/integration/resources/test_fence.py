"""Real processes that hold names: a server with a fence accepts nothing from a former holder."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from eventproc import LeaseMode
from tests.integration.resources.fence import FenceServer, Message
from tests.integration.resources.findings import find
from tests.integration.resources.story import Process, Story

EVENTS = 13
"""Of each of the four groups: 52 together."""


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "azurite"])
@pytest.mark.parametrize("lease_mode", LeaseMode)
def test_no_message_is_accepted_from_a_former_holder(kind, lease_mode, request, tmp_path):
    """Whoever joins, leaves, is killed or frozen. Times are not asserted: see ``__main__``."""
    store = str(tmp_path / "store.db")
    if kind == "azurite":
        connection, container = map(request.getfixturevalue, ("storage", "container"))
        store = f"{container} {connection}"
    story = Story(tmp_path, store, lease_mode.name, Random(f"7 {kind} {lease_mode}"))
    story.play(EVENTS)
    found = find(story.fence.messages, story.processes)

    assert found.violations == []
    assert found.accepted_count > 0
    assert sum(map(len, found.closed_s.values())) >= EVENTS


def _process(pid: int, **known: Any) -> Process:
    popen: Any = SimpleNamespace(pid=pid)
    return Process(f"p{pid}", popen, 0.0, **known)


def _messages(text: str) -> list[Message]:
    """Read ``time pid:epoch`` items; ``!`` marks one that the server refused."""
    read = []
    for item in text.split(", "):
        at, sender = item.rstrip("!").split()
        pid, epoch = map(int, sender.split(":"))
        read.append(Message(float(at), "a", epoch, f"p{pid}", pid, not item.endswith("!")))
    return read


@pytest.mark.parametrize(
    ("log", "violation"),
    [
        ("1 1:5, 2 2:6, 3 1:5", "accepted below 6"),
        ("1 1:5, 2 2:5", "two holders of one epoch"),
        ("1 1:5, 2 1:5!", "refused, but the highest was 5"),
        ("1 3:5, 2 2:6, 3 3:5!", "overlap without a freeze"),
        ("4 1:5, 5 2:6, 6 1:5!", "overlap without a freeze"),
    ],
)
def test_the_findings_show(log, violation):
    """Process 1 was frozen from 1.5 to 2.5, and process 3 never."""
    processes = [_process(1, frozen=[(1.5, 2.5)]), _process(2), _process(3)]

    assert any(found.startswith(violation) for found in find(_messages(log), processes).violations)


def test_a_message_of_a_holder_that_woke_up_is_an_overlap_and_no_violation():
    """It is refused."""
    processes = [_process(1, frozen=[(1.5, 2.5)]), _process(2)]
    found = find(_messages("1 1:5, 2 2:6, 2.75 1:5!, 3 2:6"), processes)

    assert (found.violations, len(found.refused), found.after_wake_s) == ([], 1, [0.25])


@pytest.mark.parametrize(
    ("log", "closed_s"),
    [
        ("1 1:5, 2 1:5, 2.5 2:6", {"planned": [0.5]}),
        ("1 1:5, 20 4:6, 23 2:7", {"planned": [19.0], "SIGKILL": [2.0]}),
        ("1 1:5, 20 1:5, 23 2:7", {"planned, beside a fault": [3.0]}),
    ],
)
def test_a_name_is_closed_from_the_fault_of_its_holder_or_its_last_message(log, closed_s):
    """Process 4 was killed at 21."""
    processes = [_process(1), _process(2), _process(4, killed_s=21.0)]

    assert find(_messages(log), processes).closed_s == closed_s


def test_the_server_refuses_what_is_below_the_highest_epoch_of_the_name():
    """Other names have fences of their own."""
    server = FenceServer()
    for name, epoch in [("a", 5), ("a", 5), ("a", 6), ("a", 5), ("b", 1), ("a", 6)]:
        server.take(name, epoch, "p1", 1)

    assert [m.is_accepted for m in server.messages] == [True, True, True, False, True, True]
