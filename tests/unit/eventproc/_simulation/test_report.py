"""The figures of a history that is written by hand."""

from dataclasses import replace

import pytest

from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import GroupState, MemberFacts
from eventproc._core.placement.plan import plan
from eventproc._core.placement.weighted import Weighted
from eventproc._simulation.history import (
    Change,
    Count,
    History,
    Listing,
    Membership,
    ScriptEvent,
    Wait,
)
from eventproc._simulation.report import report_of, steps_of

A = MemberFacts(ordinal=0)
B = MemberFacts(ordinal=1)


def history_of_a_join() -> History:
    """A has two partitions; B joins at 10 s and gets one of them at 12 s."""
    ids = ("0", "1")
    return History(
        duration_s=3600,
        script_events=[ScriptEvent(at_s=0, name="start:1"), ScriptEvent(at_s=10, name="join:1")],
        memberships=[
            Membership(at_s=0, members={"A": A}, partition_ids=ids),
            Membership(at_s=10, members={"A": A, "B": B}, partition_ids=ids),
        ],
        changes=[
            Change(at_s=1, partition_id="0", owner_id="A"),
            Change(at_s=1, partition_id="1", owner_id="A"),
            Change(at_s=12, partition_id="1", owner_id="B"),
        ],
        listings=[
            Listing(at_s=0.5, owner_id="A", is_ownership=True),
            Listing(at_s=10.5, owner_id="B", is_ownership=False),
            Listing(at_s=11, owner_id="B", is_ownership=True),
        ],
        writes=[Count(at_s=1, count=2), Count(at_s=12, count=1)],
        waits=[Wait(at_s=13, seconds=1.5)],
    )


def test_each_event_of_a_script_has_figures_of_its_own():
    """Moves, durations, polls and operations belong to the event that they follow."""
    start, join = report_of(history_of_a_join()).events

    assert (start.moves, start.moves_minimum, start.seconds_to_balance) == (2, 2, 1)
    assert (join.moves, join.moves_minimum, join.moved_twice) == (1, 1, 0)
    assert (join.cycles_to_balance, join.seconds_to_balance) == (1, 2)
    assert (join.lists, join.writes, join.worst_gap_seconds, join.spread_final) == (2, 1, 1.5, 0)


def test_partitions_that_moved_more_than_once_are_counted():
    """One move more than the minimum each."""
    history = history_of_a_join()
    history.changes += [
        Change(at_s=14, partition_id="1", owner_id="A"),
        Change(at_s=15, partition_id="1", owner_id="B"),
    ]
    join = report_of(history).events[1]

    assert (join.moves, join.moves_minimum, join.moved_twice) == (3, 1, 1)
    assert join.seconds_to_balance == 5


def test_the_price_is_that_of_a_month_however_long_the_simulation_takes():
    """Twice the time with twice the listings and writes costs the same."""
    hour = history_of_a_join()
    hour.listings *= 1000
    hour.writes *= 1000
    two_hours = replace(hour, duration_s=7200, listings=hour.listings * 2, writes=hour.writes * 2)
    prices = [report_of(each).totals.dollars_per_month for each in (hour, two_hours)]

    assert prices[0] == prices[1] > 1


def test_a_group_that_stays_uneven_has_no_time_to_balance():
    """Without the hand-over the new processor owns nothing."""
    history = history_of_a_join()
    del history.changes[-1]
    join = report_of(history).events[1]

    assert (join.seconds_to_balance, join.cycles_to_balance, join.spread_final) == (None, None, 2)


def test_the_spread_is_none_while_a_partition_has_no_owner():
    """It changes with each change of ownership or membership."""
    steps = [(step.at_s, step.spread) for step in steps_of(history_of_a_join())]

    assert steps == [(0, None), (1, 0), (10, 2), (12, 0)]


def test_a_group_is_balanced_when_the_owners_are_those_planned():
    """Although the shares are even, ``Ordinal`` plans the first partition for the first ordinal."""
    history = history_of_a_join()
    history.placement = Ordinal()
    swapped = replace(
        history, changes=[*history.changes[:2], replace(history.changes[2], partition_id="0")]
    )
    join, other = (report_of(each).events[1] for each in (history, swapped))

    assert (join.seconds_to_balance, join.moves_minimum) == (2, 1)
    assert (other.seconds_to_balance, other.spread_final) == (None, 0)


def test_uneven_shares_are_balanced_if_the_placement_plans_them():
    """B's weight gives it nothing, so nothing has to move."""
    history = history_of_a_join()
    history.placement = Weighted()
    history.memberships[1] = replace(
        history.memberships[1], members={"A": A, "B": MemberFacts(weight=0.01)}
    )
    del history.changes[-1]
    join = report_of(history).events[1]

    assert (join.seconds_to_balance, join.moves_minimum, join.spread_final) == (0, 0, 2)


@pytest.mark.parametrize(("capacity", "seconds"), [(1, 1), (2, None)])
def test_a_partition_without_an_owner_is_balanced_only_if_no_member_has_room(capacity, seconds):
    """A owns one of two partitions."""
    history = history_of_a_join()
    history.placement = Weighted()
    history.memberships = [
        replace(history.memberships[0], members={"A": MemberFacts(capacity=capacity)})
    ]
    planned = plan(
        GroupState(
            resources=("0", "1"),
            owner_by_resource={},
            members=history.memberships[0].members,
        ),
        history.placement,
    )
    history.changes = [c for c in history.changes[:2] if c.partition_id == min(planned)]

    assert report_of(history).events[0].seconds_to_balance == seconds


def test_a_group_without_members_is_not_balanced():
    """Not even in the moment before its processors start again."""
    history = history_of_a_join()
    history.placement = Ordinal()
    history.memberships[1] = replace(history.memberships[1], members={})

    assert [step.is_balanced for step in steps_of(history)] == [False, True, False, False]


def test_totals_are_operations_per_hour():
    """The same operations in two hours give half the rate."""
    history = history_of_a_join()
    history.duration_s = 7200
    totals = report_of(history).totals

    assert (totals.lists_per_hour, totals.writes_per_hour) == (2, 2)
