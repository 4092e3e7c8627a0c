"""What happened between two readings, in words."""

import pytest

from eventproc._core.watching.changes import Tone, entries_between, entries_of_findings
from eventproc.models import MemberStatus
from tests.unit.eventproc._core.watching.readings import (
    RULES,
    end,
    group,
    member,
    partition,
    watched,
)

LEAVING = MemberStatus.LEAVING


def happened(before, after):
    """Return kind and text of each entry."""
    entries = entries_between(before, after, expiration_s=RULES.expiration_s)
    return [(entry.kind, entry.text) for entry in entries]


def of_members(before, after):
    """Return what happened between two readings of these members."""
    return happened(group(0, [], before), group(2, [], after))


def test_nothing_happened():
    """Two equal readings, also with renewed leases and moved checkpoints."""
    before = group(0, [partition("0")])
    after = group(2, [partition("0", renewed_ago_s=0, position=15)])

    assert happened(before, after) == []


@pytest.mark.parametrize(
    ("before", "after", "entry"),
    [
        ([], [member("a")], ("joined", "a joined")),
        (
            [],
            [member("a", has_record=False)],
            ("joined", "a, a processor of an Azure SDK, joined"),
        ),
        ([member("a")], [], ("left", "a left")),
        ([member("a", status=LEAVING)], [], ("left", "a left")),
        ([member("a", has_record=False)], [], ("left", "a owns nothing any more")),
        (
            [member("a", silent_s=29)],
            [member("a", is_live=False, silent_s=67)],  # Of its record: others have its leases.
            ("died", "a has not renewed for 31 s and counts as dead; it had 0 partitions"),
        ),
        ([member("a", is_live=False)], [member("a")], ("returned", "a renews again")),
        (
            [member("a", incarnation="1")],
            [member("a", incarnation="2")],
            ("restarted", "a was started anew"),
        ),
        (
            [member("a")],
            [member("a", status=LEAVING)],
            ("leaving", "a is leaving, and gives up its partitions"),
        ),
        (
            [member("a", status=MemberStatus.STANDBY)],
            [member("a")],
            ("active", "a takes part"),
        ),
    ],
)
def test_what_happened_to_a_member(before, after, entry):
    """One entry, of the one thing that explains the others."""
    assert of_members(before, after) == [entry]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([member("a", is_live=False)], []),
        ([member("a", is_live=False)], [member("a", is_live=False, silent_s=99)]),
        ([], [member("a", is_live=False)]),
    ],
)
def test_a_member_that_was_dead_before_makes_no_entry(before, after):
    """Its death was one."""
    assert of_members(before, after) == []


def moved(before, after, members_before=None, members_after=None):
    """Return what happened between two readings of these partitions."""
    return happened(group(0, before, members_before), group(2, after, members_after))


A_AND_B = [member("a"), member("b")]


@pytest.mark.parametrize(
    ("before", "after", "members_before", "members_after", "entry"),
    [
        (
            [partition("0", None)],
            [partition("0", "a")],
            A_AND_B,
            A_AND_B,
            ("claimed", "a claimed partition 0"),
        ),
        (
            [partition("0", "a")],
            [partition("0", None)],
            A_AND_B,
            A_AND_B,
            ("released", "a released partition 0"),
        ),
        (
            [partition("0", "a")],
            [partition("0", "b")],
            A_AND_B,
            A_AND_B,
            ("moved", "Partition 0 moved from a to b"),
        ),
        (
            [partition("0", "a")],
            [partition("0", "b")],
            A_AND_B,
            [member("a", hands_over=False), member("b")],
            ("stolen", "b took partition 0 from a, which was alive"),
        ),
    ],
)
def test_how_a_partition_changed_its_owner(before, after, members_before, members_after, entry):
    """As far as the records show it."""
    assert moved(before, after, members_before, members_after) == [entry]


def test_a_partition_of_a_dead_member_is_taken_over():
    """It expired first, or between the two readings."""
    dead = [member("a", is_live=False), member("b")]
    expired = partition("0", "a", is_expired=True)
    text = "b took over partition 0 of a, which did not renew"

    assert moved([expired], [partition("0", "b")], dead, [member("b")]) == [("taken over", text)]
    assert ("taken over", text) in moved(
        [partition("0", "a"), partition("1", "a")],
        [partition("0", "b"), partition("1", "a", is_expired=True)],
        A_AND_B,
        dead,
    )


@pytest.mark.parametrize(
    ("silent_s", "kinds"),
    [
        (27.0, ["died", "taken over"]),  # 29 s in the second reading; times are whole seconds.
        (26.9, ["left", "followed"]),
        (None, ["left", "followed"]),
    ],
)
def test_a_member_that_expires_between_two_readings_did_not_leave(silent_s, kinds):
    """Others already have all its partitions when it is seen again that it is gone."""
    before = group(0, [partition("0", "a")], [member("a", silent_s=silent_s), member("b")])
    after = group(2, [partition("0", "b")], [member("b")])

    assert [kind for kind, _ in happened(before, after)] == kinds


def test_the_log_says_how_long_the_silence_was_and_what_the_dead_member_had():
    """Its partitions are those of the reading in which it had them."""
    before = group(0, [partition("0"), partition("1")], [member("a", silent_s=29), member("b")])
    after = group(2, [partition("0", "b"), partition("1", "b")], [member("b")])

    assert happened(before, after) == [
        ("died", "a has not renewed for 31 s and counts as dead; it had 2 partitions"),
        ("taken over", "b took over partitions 0 and 1 of a, which did not renew"),
    ]


def test_a_member_that_was_not_late_left_although_its_lease_ended_meanwhile():
    """The two readings are far apart: an outage, or a dashboard that reads seldom."""
    before = group(0, [partition("0")], [member("a", silent_s=18), member("b")])
    after = group(60, [partition("0", "b")], [member("b")])

    assert [kind for kind, _ in happened(before, after)] == ["left", "followed"]


def test_a_partition_of_a_member_that_left_follows():
    """It gave it up gracefully."""
    leaving = [member("a", status=LEAVING), member("b")]

    assert moved([partition("0", "a")], [partition("0", "b")], leaving, [member("b")]) == [
        ("left", "a left"),
        ("followed", "b claimed partition 0 after a, which left"),
    ]


def test_what_one_member_did_at_once_is_one_entry():
    """With the partitions' names, of many the number."""
    before = [partition(str(n), None) for n in range(40)]
    after = [partition(str(n), "a") for n in range(40)]
    readings = group(0, before, A_AND_B), group(2, after, A_AND_B)
    (entry,) = entries_between(*readings, expiration_s=RULES.expiration_s)

    assert entry.text == "a claimed partitions 0, 1, 2, 3, 4 and 35 more"
    assert len(entry.partition_ids) == 40


def test_a_new_partition_is_claimed():
    """The hub has grown."""
    assert moved([], [partition("4", "a")], A_AND_B, A_AND_B) == [
        ("claimed", "a claimed partition 4")
    ]


@pytest.mark.parametrize(
    ("before", "after", "entry"),
    [
        (
            {"position": 50},
            {"position": 20, "is_moved_by_operator": True},
            ("operator", "An operator wrote the checkpoint of partition 0 from 50 to 20"),
        ),
        (
            {"position": 50},
            {"position": 50, "is_moved_by_operator": True},
            ("operator", "An operator wrote the checkpoint of partition 0"),
        ),
        (
            {"position": 5_000},
            {"position": 20},
            ("went back", "The checkpoint of partition 0 went back from 5,000 to 20"),
        ),
        (
            {"position": 50},
            {"position": None},
            ("went back", "The checkpoint of partition 0 went back from 50 to none"),
        ),
        ({}, {"error": "x"}, ("damaged", "The checkpoint of partition 0 cannot be read")),
        ({"error": "x"}, {}, ("repaired", "The checkpoint of partition 0 can be read again")),
    ],
)
def test_what_happened_to_a_checkpoint(before, after, entry):
    """Beside its ordinary progress."""
    assert moved([partition("0", **before)], [partition("0", **after)]) == [entry]


def test_a_move_by_an_operator_is_one_entry():
    """Until the owner begins there, each reading shows it."""
    p = partition("0", is_moved_by_operator=True)

    assert moved([p], [p]) == []


def test_a_partition_that_becomes_stuck_and_moves_again_is_logged_once_each():
    """With the reason, and how long it lasted."""
    stuck = [
        group(at_s, [partition("0", written_ago_s=at_s, end=end(at_s, 50))])
        for at_s in range(0, 81, 20)
    ]
    free = group(100, [partition("0", position=50, end=end(100, 50, 50))])
    before, first, second = (watched(stuck[:n])[1] for n in (3, 4, 5))
    (begun,) = entries_of_findings(before, first, stuck[3])
    (ended,) = entries_of_findings(second, watched([*stuck, free])[1], free)

    assert (begun.kind, begun.tone, begun.partition_ids) == ("stuck", Tone.BAD, ("0",))
    assert begun.text == first[0].text
    assert entries_of_findings(first, second, stuck[4]) == []
    assert (ended.kind, ended.text) == (
        "moves again",
        "Partition 0 is handled again, after 100 s",
    )
