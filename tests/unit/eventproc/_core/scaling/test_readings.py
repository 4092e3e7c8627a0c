"""Backlogs and rates of successive readings."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.scaling.readings import PartitionReading, Reading, extended, rates_between

A, B = "processor-a", "processor-b"


def partition(last, handled, *, first=0, owner_id=A):
    return PartitionReading(first=first, last=last, handled=handled, owner_id=owner_id)


def reading(at_s, *partitions):
    return Reading(
        at_s=at_s,
        partitions={str(number): found for number, found in enumerate(partitions)},
        member_ids=frozenset(p.owner_id for p in partitions if p.owner_id),
    )


def rates(*readings):
    return rates_between(readings, written_within_s=30)


@pytest.mark.parametrize(
    ("found", "backlog"),
    [
        (partition(99, 49), 50),
        (partition(99, None), 100),
        (partition(99, 10, first=80), 20),
        (partition(99, None, first=80), 20),
        (partition(-1, None), 0),
        (partition(99, 120), 0),
    ],
)
def test_a_backlog_counts_from_the_checkpoint_or_the_oldest_retained_event(found, backlog):
    """What retention deleted is no backlog, nor is a checkpoint beyond the end a negative one."""
    assert found.backlog == backlog


def test_what_waits_in_a_paused_partition_is_no_backlog():
    """More processes would not handle it."""
    paused = replace(partition(99, 49), is_paused=True)

    assert reading(0, paused, partition(9, 4)).backlog == 5


def test_what_arrives_in_a_paused_partition_does_not_count():
    """What the others handle and get does."""
    before = reading(0, replace(partition(100, 50), is_paused=True), partition(100, 50))
    after = reading(10, replace(partition(900, 50), is_paused=True), partition(300, 150))

    assert (rates(before, after).arrival, rates(before, after).drain) == (20, 10)


def test_rates_are_events_per_second_between_the_first_and_the_last_reading():
    """Arrival is the growth of the hub, drain the progress of the checkpoints."""
    found = rates(reading(0, partition(100, 50)), reading(10, partition(300, 150)))

    assert (found.arrival, found.drain) == (20, 10)


def test_one_reading_shows_no_rates():
    """Nor do two of the same time."""
    assert rates(reading(0, partition(100, 50))) is None
    assert rates(reading(5, partition(100, 50)), reading(5, partition(101, 50))) is None


def test_to_skip_deleted_events_is_no_progress():
    """A checkpoint that moves from 10 over the deleted events to 899 moved over 49 of them."""
    before = reading(0, partition(900, 10, first=0))
    after = reading(10, partition(1000, 899, first=850))

    assert rates(before, after).drain == 5


def test_a_hub_that_was_made_anew_shows_no_rates():
    """Its numbers begin again, which is neither arrival nor progress."""
    found = rates(reading(0, partition(1000, 900)), reading(10, partition(50, None)))

    assert (found.arrival, found.drain) == (0, 0)


def test_a_checkpoint_of_a_new_hub_beyond_that_of_the_former_one_is_no_progress():
    """The group was far behind in the former hub, and keeps up in the new one."""
    found = rates(reading(0, partition(1000, 10)), reading(10, partition(500, 400)))

    assert (found.arrival, found.drain) == (0, 0)


def test_the_rate_of_one_is_the_mean_of_the_owners():
    """The slower ones count as much as the faster ones."""
    before = reading(0, partition(10_000, 0), partition(10_000, 0, owner_id=B))
    after = reading(10, partition(11_000, 500), partition(11_000, 1000, owner_id=B))

    assert rates(before, after).of_one == 75


def test_an_owner_that_had_nothing_to_do_in_between_shows_no_rate_of_one():
    """Whatever its backlog is before and after."""
    readings = [
        reading(0, partition(10_000, 0)),
        reading(5, partition(10_000, 10_000)),
        reading(10, partition(100_000, 10_500)),
    ]

    assert rates(*readings).of_one is None


def test_the_rate_of_one_is_that_of_owners_with_a_backlog():
    """An owner that keeps up with its partitions could handle more, so it is not counted."""
    before = reading(0, partition(10_000, 0), partition(100, 99, owner_id=B))
    after = reading(10, partition(11_000, 500), partition(110, 109, owner_id=B))

    assert rates(before, after).of_one == 50


def test_what_a_partition_that_changed_hands_did_counts_for_its_owner_now():
    """Here that is b alone, with its own partition and the one that a left to it."""
    before = reading(0, partition(10_000, 0), partition(10_000, 0, owner_id=B))
    after = reading(10, partition(11_000, 500, owner_id=B), partition(11_000, 1000, owner_id=B))

    assert rates(before, after).of_one == 150


def test_an_owner_without_progress_does_not_lower_the_rate_of_one():
    """It waits for something else, such as a database that does not answer."""
    before = reading(0, partition(10_000, 0), partition(10_000, 0, owner_id=B))
    after = reading(10, partition(11_000, 500), partition(11_000, 0, owner_id=B))

    assert rates(before, after).of_one == 50


def test_events_that_only_wait_for_a_checkpoint_show_no_rate_of_one():
    """A backlog of less than what is handled between two checkpoints is none."""
    before = reading(0, partition(100, 0))
    after = reading(10, partition(200, 100))

    assert rates(before, after).of_one is None


def test_readings_of_a_group_that_has_not_settled_are_dropped():
    """The newest one is kept: the next one is compared with it."""
    first, second = reading(0, partition(9, 1)), reading(10, partition(9, 2))

    assert extended((first,), second, since_s=30, span_s=30) == (second,)
    assert extended((first,), second, since_s=0, span_s=30) == (first, second)


@pytest.mark.parametrize(
    ("owner_id", "is_same"),
    [(A, True), (B, False), (None, False)],
)
def test_a_partition_that_changes_hands_shows(owner_id, is_same):
    """Also one whose owner stops."""
    first, second = partition(9, 1), partition(9, 1, owner_id=owner_id)

    assert reading(10, first, second).is_comparable_with(reading(0, first, first)) is is_same


def test_a_pause_that_begins_or_ends_shows():
    """Rates of before and after it have nothing in common."""
    running, paused = partition(9, 1), replace(partition(9, 1), is_paused=True)

    assert not reading(10, paused).is_comparable_with(reading(0, running))
    assert not reading(10, running).is_comparable_with(reading(0, paused))
    assert reading(10, paused).is_comparable_with(reading(0, paused))


@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(1, 60))
def test_kept_readings_cover_the_span_and_no_more(gaps, span_s):
    """As soon as there are enough, the readings cover the span, without a superfluous one."""
    kept: tuple[Reading, ...] = ()
    at_s = 0
    for gap in gaps:
        at_s += gap
        kept = extended(kept, reading(at_s, partition(9, 1)), since_s=0, span_s=span_s)

    covered = kept[-1].at_s - kept[0].at_s
    assert kept[-1].at_s == at_s
    assert covered >= min(span_s, at_s - gaps[0])
    assert len(kept) <= 2 or kept[-1].at_s - kept[1].at_s < span_s
