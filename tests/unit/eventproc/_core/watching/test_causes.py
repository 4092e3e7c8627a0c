"""Why a partition is stuck, by what the readings show."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from eventproc._core.ownership.pauses import Pause
from eventproc._core.watching.causes import Kind
from eventproc.models import IN_BATCH, IN_PART, alone
from tests.unit.eventproc._core.watching.readings import end, group, member, partition, watched


def stuck(at_s, partition_id="0", owner_id="a", **changes):
    """Return a partition whose checkpoint stays at 10 while 90 events wait."""
    return partition(partition_id, owner_id, written_ago_s=at_s, end=end(at_s, 100), **changes)


def moving(at_s, partition_id, owner_id="a"):
    """Return a partition whose checkpoint moves by one event in a second."""
    position = 10 + at_s
    return partition(partition_id, owner_id, position=position, end=end(at_s, 180, position))


def findings(make, seconds=90, every_s=5):
    """Return the findings after readings of what *make* returns for each time."""
    return watched([make(at_s) for at_s in range(0, seconds, every_s)])[1]


def only(found):
    """Return the only finding."""
    (finding,) = found
    return finding


def test_events_that_wait_while_the_checkpoint_moves_are_in_order():
    """However many they are, if they do not get more."""
    assert findings(lambda at_s: group(at_s, [moving(at_s, "0")])) == ()


def test_a_checkpoint_that_does_not_move_without_waiting_events_is_in_order():
    """There is nothing to do."""
    idle = partition("0", written_ago_s=900, end=end(0, 10))

    assert findings(lambda at_s: group(at_s, [idle])) == ()


def test_without_the_hub_there_is_no_finding_on_progress():
    """An old checkpoint may be all that there is to do."""
    old = partition("0", written_ago_s=9000)

    assert findings(lambda at_s: group(at_s, [old])) == ()


@pytest.mark.parametrize(("seconds", "is_stuck"), [(59, False), (66, True)])
def test_a_partition_is_stuck_after_the_time_that_an_operator_allows(seconds, is_stuck):
    """Here a minute."""
    found = findings(lambda at_s: group(at_s, [stuck(at_s)]), seconds)

    assert [f.kind for f in found] == [Kind.NOT_MOVING] * is_stuck


PAUSE = Pause(since=datetime(2026, 1, 31, 8, tzinfo=UTC), reason="INC-481")


def test_a_paused_partition_is_paused_and_not_stuck():
    """However long events wait; the finding has the operator's reason, and since when."""
    finding = only(
        findings(
            lambda at_s: group(at_s, [stuck(at_s, pause=PAUSE), stuck(at_s, "1", pause=PAUSE)])
        )
    )

    assert (finding.kind, finding.is_stuck) == (Kind.PAUSED, False)
    assert finding.partition_ids == ("0", "1")
    assert "since 2026-01-31 08:00:00 UTC: INC-481. 180 events wait" in finding.text
    assert finding.since_s == PAUSE.since.timestamp()


def test_a_single_paused_partition_is_found_too():
    """Most pauses are of one partition."""
    finding = only(findings(lambda at_s: group(at_s, [stuck(at_s, pause=PAUSE)])))

    assert finding.text.startswith("Partition 0 is paused by an operator")


def test_a_partition_that_resumed_has_time_to_make_progress():
    """Its events did not wait for it during the pause."""

    def resumed_at(resumed_s):
        return findings(
            lambda at_s: group(at_s, [stuck(at_s, pause=PAUSE if at_s < resumed_s else None)]), 300
        )

    assert resumed_at(260) == ()
    assert only(resumed_at(200)).kind is Kind.NOT_MOVING


def test_a_paused_partition_without_an_owner_has_no_owner():
    """A pause does not explain that nobody claims it."""
    alone = partition("0", None, renewed_ago_s=100, pause=PAUSE, end=end(0, 100))
    found = findings(lambda at_s: group(at_s, [alone], [member("b")]))

    assert only(found).kind is Kind.UNOWNED


def test_the_first_reading_finds_what_has_been_stuck_for_long():
    """By the ages of the checkpoint and of the newest event."""
    p = partition("0", written_ago_s=400, end=end(1000, 100, newest_ago_s=300))
    finding = only(watched([group(1000, [p])])[1])

    assert (finding.kind, finding.since_s) == (Kind.NOT_MOVING, 700)


def test_an_owner_that_moves_its_other_partitions_points_at_this_one():
    """And at the event after the checkpoint."""
    finding = only(
        findings(lambda at_s: group(at_s, [stuck(at_s), moving(at_s, "1"), moving(at_s, "2")]))
    )

    assert finding.partition_ids == ("0",)
    assert finding.is_stuck
    assert "Partition 0 has made no progress for 85 s, and 90 events wait" in finding.text
    assert "makes progress in 2 other partitions" in finding.text
    assert "event 11" in finding.text
    assert "the log of a" in finding.remedy


def test_an_owner_that_moves_nothing_while_others_do_hangs():
    """All its partitions are one finding."""
    finding = only(
        findings(lambda at_s: group(at_s, [stuck(at_s), stuck(at_s, "1"), moving(at_s, "2", "b")]))
    )

    assert finding.partition_ids == ("0", "1")
    assert "its process hangs" in finding.text
    assert "180 events wait" in finding.text


def test_a_group_that_moves_nothing_lacks_what_all_need():
    """A finding for each owner, which says so."""
    found = findings(lambda at_s: group(at_s, [stuck(at_s), stuck(at_s, "1", "b")]))

    assert [f.member_ids for f in found] == [("a",), ("b",)]
    assert all("no partition of the group moves" in f.text for f in found)


def test_later_events_that_are_handled_show_the_one_that_is_not():
    """With key lanes, others overtake it."""
    finding = only(
        findings(lambda at_s: group(at_s, [stuck(at_s, done_above_count=40), moving(at_s, "1")]))
    )

    assert "40 later events are handled: event 11 alone holds the checkpoint back" in finding.text


def test_an_isolation_shows_an_event_that_ends_its_process():
    """The last delivery is that of the present owner, which lives."""

    def text_at(isolation):
        return only(findings(lambda at_s: group(at_s, [stuck(at_s, isolation=isolation)]))).text

    assert "Processes end while they handle event 11" not in text_at(IN_BATCH)
    assert "at least 1 had these events when they ended" in text_at(IN_PART)
    assert "at least 3 had these events when they ended" in text_at(alone(2))


def test_owners_in_a_row_without_progress_show_it_too():
    """Each new one has as much time as the first; the third has none."""
    owners = "abcd"

    def make(at_s):
        return group(at_s, [stuck(at_s, owner_id=owners[at_s // 25])])

    assert findings(make, 70) == ()
    assert "3 owners in a row did not get past it" in only(findings(make, 90)).text


def test_a_new_owner_has_time_to_begin():
    """Its checkpoint is as old as its predecessor left it."""

    def make(at_s):
        return group(at_s, [stuck(at_s, owner_id="a" if at_s < 50 else "b")])

    assert findings(make, 105) == ()
    assert [f.kind for f in findings(make, 115)] == [Kind.NOT_MOVING]


def test_a_move_by_an_operator_that_is_not_followed_is_the_reason():
    """The owner should begin there within seconds."""
    finding = only(findings(lambda at_s: group(at_s, [stuck(at_s, is_moved_by_operator=True)])))

    assert "has not begun at the position to which an operator moved" in finding.text


def test_a_damaged_checkpoint_comes_first():
    """With the store's own words."""
    finding = only(findings(lambda at_s: group(at_s, [stuck(at_s, error="no JSON")])))

    assert finding.kind is Kind.DAMAGED
    assert finding.text == "The checkpoint of partition 0 cannot be read: no JSON"


@pytest.mark.parametrize(
    ("owner_id", "text"),
    [("x", "its owner x does not renew its leases"), (None, "it was released or never claimed")],
)
def test_a_partition_without_a_live_owner_is_stuck_after_an_expiration(owner_id, text):
    """Until then another member may be about to claim it."""

    def make(at_s):
        lost = partition("0", owner_id, is_expired=owner_id is not None, renewed_ago_s=at_s)
        dead = [member("x", is_live=False)] if owner_id else []
        return group(at_s, [lost], [member("b"), *dead])

    assert [f.kind for f in findings(make, 36)] == [Kind.LOST] * (owner_id is not None)
    finding = only(findings(make, 50))
    assert finding.kind is Kind.UNOWNED
    assert text in finding.text
    assert "none of the 1 live members has claimed it" in finding.text


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("x", ("x did not leave and does not renew", "It was killed", "the end of its log")),
        ("xy", ("x and y did not leave and do not renew", "They were killed", "of their logs")),
    ],
)
def test_members_that_did_not_leave_are_told_when_nothing_else_is_wrong(lost, words):
    """One, or several."""
    members = [member("b"), *(member(name, is_live=False) for name in lost)]
    finding = only(findings(lambda at_s: group(at_s, [partition("0", "b")], members)))

    assert finding.kind is Kind.LOST
    assert [word for word in words if word not in f"{finding.text} {finding.remedy}"] == []


def test_a_finding_says_for_how_long_a_partition_has_had_no_owner():
    """By the age of its last renewal, which may be older than the first reading."""
    lost = partition("0", "x", is_expired=True, renewed_ago_s=100)
    finding = only(watched([group(1000, [lost], [member("b")])])[1])

    assert "has had no live owner for 100 s" in finding.text


def test_two_members_that_take_a_partition_from_each_other_conflict():
    """More members that follow each other are a group that is rebalanced."""

    def make(owners):
        return lambda at_s: group(at_s, [partition("0", owners[at_s // 10])])

    finding = only(findings(make("abababab"), 60))
    assert finding.kind is Kind.CONFLICT
    assert "now with b" in finding.text
    assert findings(make("abcdabcd"), 60) == ()


def test_more_arriving_than_handled_falls_behind():
    """Once a backlog shows that it is no wait for the next checkpoint."""

    def make(at_s):
        position, last = 10 + 5 * at_s, 10 + 50 * at_s
        return group(at_s, [partition("0", position=position, end=end(at_s, last, position))])

    assert findings(make, 20) == ()
    finding = only(findings(make, 90))
    assert finding.kind is Kind.BEHIND
    assert not finding.is_stuck
    assert "50 events arrive in a second, and 5 are handled" in finding.text


def course(partition_id, at_s, *, arrival, drain, owner_id="a"):
    """Return a partition at a time, by its events in a second."""
    position, last = 10 + drain * at_s, 10 + arrival * at_s
    return partition(partition_id, owner_id, position=position, end=end(at_s, last, position))


def test_more_members_are_advised_only_where_the_member_is_too_slow():
    """A partition has one member at a time, so a single one that has too much needs another
    remedy."""

    def hot(at_s):
        return group(
            at_s,
            [
                course("0", at_s, arrival=50, drain=5),
                *(course(p, at_s, arrival=5, drain=5) for p in "123"),
            ],
        )

    def alone(at_s):
        return group(at_s, [course("0", at_s, arrival=50, drain=5)])

    def slow(at_s):
        return group(at_s, [course(p, at_s, arrival=50, drain=5) for p in "0123"])

    def mixed(at_s):
        owners = {"0": "a", "1": "a", "2": "b"}
        return group(
            at_s,
            [course(p, at_s, arrival=50, drain=5, owner_id=owners[p]) for p in owners],
        )

    helps, does_not = "More members help", "More members do not help partition"
    remedies = [only(findings(make, 90)).remedy for make in (hot, alone, slow, mixed)]

    assert [(helps in text, does_not in text) for text in remedies] == [
        (False, True),
        (False, True),
        (True, False),
        (True, True),
    ]
    assert "do not help partition 2:" in remedies[3]


@pytest.mark.parametrize("arrival", [1, 50])
@pytest.mark.parametrize("before", [1, 45])
def test_a_partition_whose_checkpoint_rests_does_not_fall_behind(arrival, before):
    """Its handler hangs or fails at an event: more members do not help, and it will be stuck."""

    def make(at_s):
        handled = arrival * min(at_s, before)
        position, last = 10 + handled, 10 + arrival * at_s
        return group(at_s, [partition("0", position=position, end=end(at_s, last, position))])

    kinds = {f.kind for until in range(4, 160, 2) for f in findings(make, until)}

    assert kinds == {Kind.NOT_MOVING}


def test_a_paused_hub_does_not_make_a_stuck_partition_behind():
    """One finding for each partition: the one that explains the others."""

    def make(at_s):
        return group(at_s, [replace(stuck(at_s), end=end(at_s, 100 + 50 * at_s))])

    assert [f.kind for f in findings(make)] == [Kind.NOT_MOVING]


def test_one_partition_with_most_of_the_backlog_is_hot():
    """More members would not help it; of two partitions, one always has half."""
    lags = {"0": 300, "1": 20, "2": 30}
    parts = [partition(p, end=end(0, 10 + lag, newest_ago_s=1)) for p, lag in lags.items()]
    (finding,) = watched([group(0, parts)])[1]

    assert (finding.kind, finding.partition_ids) == (Kind.HOT, ("0",))
    assert "300 of the 350 events" in finding.text
    assert "More members do not help partition 0" in finding.remedy
    assert watched([group(0, parts[:2])])[1] == ()


def test_only_one_look_does_not_know_whether_the_hottest_partition_moves():
    """A backlog may get smaller, and a handler may fail."""

    def at(at_s):
        lags = {"0": 300 + at_s, "1": 20, "2": 30}
        parts = [
            partition(p, position=10 + at_s, end=end(at_s, 10 + at_s + lag, 10 + at_s))
            for p, lag in lags.items()
        ]
        return group(at_s, parts)

    (first,), (second,) = (watched(readings)[1] for readings in ([at(0)], [at(0), at(5)]))

    assert first.remedy.startswith("Look again. If they get fewer, do nothing.")
    assert second.remedy.startswith("More members do not help partition 0")


def test_a_partition_whose_checkpoint_rests_is_not_hot():
    """An event on which the handler fails holds the others up; soon it counts as stuck."""
    lags = {"0": 300, "1": 20, "2": 30}
    parts = [
        partition(p, written_ago_s=45, end=end(0, 10 + lag, newest_ago_s=1))
        for p, lag in lags.items()
    ]

    assert watched([group(0, parts)])[1] == ()


def test_a_partition_that_catches_up_is_not_hot():
    """Such as after a restart: soon nothing waits."""

    def make(at_s):
        position, last = 10 + 50 * at_s, 20_000 + 5 * at_s
        late = partition("0", "a", position=position, end=end(at_s, last, position))
        return group(at_s, [late, *(course(p, at_s, arrival=5, drain=5) for p in "123")])

    assert findings(make, 90) == ()


def test_the_first_reading_calls_no_old_checkpoint_good_while_events_wait():
    """The newest of them came just now, so whether it moves is known a minute later."""

    def at(at_s):
        p = partition("0", written_ago_s=300 + at_s, end=end(at_s, 20 + at_s, newest_ago_s=0))
        return group(at_s, [p])

    (first,) = watched([at(0)])[1]
    (later,) = watched([at(0), at(30), at(60)])[1]

    assert (first.kind, first.is_stuck) == (Kind.UNSURE, False)
    assert "has not moved for 5 min, and 10 events wait" in first.text
    assert later.kind is Kind.NOT_MOVING


def test_an_event_that_came_just_now_is_no_reason_to_doubt():
    """A quiet partition has an old checkpoint. Of a single event the age is known."""
    p = partition("0", written_ago_s=300, end=end(0, 11, newest_ago_s=0))

    assert watched([group(0, [p])])[1] == ()


def test_one_reading_tells_from_the_checkpoints_that_others_move():
    """``status`` has only one: a young checkpoint counts as progress."""
    stuck = partition("0", written_ago_s=300, end=end(0, 20, newest_ago_s=200))
    (finding,) = watched([group(0, [stuck, partition("1")])])[1]

    assert finding.kind is Kind.NOT_MOVING
    assert "makes progress in 1 other partition" in finding.text
