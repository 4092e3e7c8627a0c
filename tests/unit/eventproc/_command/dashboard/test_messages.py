"""What the page is sent."""

import json

from eventproc._command.dashboard.messages import Shown, sample_of, state_json
from eventproc._core.watching.changes import Entry
from eventproc._core.watching.history import History
from eventproc.models import MemberStatus
from tests.unit.eventproc._core.watching.readings import end, group, member, partition, watched

EXPIRATION_S = 30


def shown_of(*readings):
    """Return the newest reading with what follows from all."""
    memory, findings = watched(readings)
    return Shown(group=readings[-1], memory=memory, findings=findings)


def test_a_message_names_partitions_and_owners_by_number():
    """With a list for each column."""
    reading = group(
        100,
        [
            partition("0", "b", end=end(100, 25)),
            partition("1", None, position=None, written_ago_s=None),
        ],
        [member("b")],
    )
    shown, history = shown_of(reading), History()
    history.add(reading, sample_of(shown), [], gap_s=10)

    state = state_json(shown, history, since=0, expiration_s=EXPIRATION_S)

    assert state["is_whole"]
    assert state["owners"] == [["b", 0]]
    assert state["partitions"]["owner"] == [0, -1]
    assert state["partitions"]["lag"] == [15, None]
    assert state["moves"] == [100, 0, 0, 0, 100, 1, -1, 0]
    assert state["samples"] == [[100, 15, None, None, 1, 1, 0]]
    assert state["members"][0]["partitions"] == 1
    json.dumps(state, allow_nan=False)


def test_a_message_continues_the_one_before():
    """The newest columns, and only what was added to the history."""
    history = History()
    first, second = group(100, [partition("0")]), group(102, [partition("0", "b")])
    history.add(first, sample_of(shown_of(first)), [], gap_s=10)
    shown = shown_of(first, second)
    entry = Entry(at_s=102, kind="moved", text="it moved", partition_ids=("0",))
    history.add(second, sample_of(shown), [entry], gap_s=10)

    state = state_json(shown, history, since=1, expiration_s=EXPIRATION_S)

    assert not state["is_whole"]
    assert state["owners"] == [["b", 1]]
    assert state["moves"] == [102, 0, 0, 0]
    assert [e["text"] for e in state["log"]] == ["it moved"]
    assert len(state["samples"]) == 1


def test_a_reader_that_is_too_far_behind_gets_everything():
    """What it misses is not there any more."""
    history = History(moves_max=2)
    for n, owner_id in enumerate("abcdef"):
        reading = group(100 + n, [partition("0", owner_id)])
        history.add(reading, sample_of(shown_of(reading)), [], gap_s=10)

    def state(since):
        return state_json(shown_of(reading), history, since=since, expiration_s=EXPIRATION_S)

    assert (state(5)["is_whole"], state(4)["is_whole"]) == (False, False)
    assert state(3)["is_whole"]
    names = [name for name, _ in state(3)["owners"]]
    assert state(3)["base"] == [103, 0, names.index("d"), 0]


def test_the_state_of_a_member_is_one_word():
    """A late one is shown as such before it counts as dead."""
    members = [
        member("active"),
        member("dead", is_live=False, silent_s=40),
        member("late", silent_s=20),
        member("leaving", status=MemberStatus.LEAVING),
        member("restarting", status=MemberStatus.RESTARTING, silent_s=20),
    ]
    reading = group(100, [], members)
    shown, history = shown_of(reading), History()
    history.add(reading, sample_of(shown), [], gap_s=10)

    found = state_json(shown, history, since=0, expiration_s=EXPIRATION_S)["members"]

    assert [m["state"] for m in found] == [m["id"] for m in found]


def test_findings_name_their_partitions():
    """By number, with the reason and the remedy."""
    reading = group(100, [partition("7"), partition("8", error="no JSON")])
    shown, history = shown_of(reading), History()
    history.add(reading, sample_of(shown), [], gap_s=10)

    (finding,) = state_json(shown, history, since=0, expiration_s=EXPIRATION_S)["findings"]

    assert (finding["kind"], finding["partitions"]) == ("damaged checkpoint", [1])
    assert finding["is_stuck"]
