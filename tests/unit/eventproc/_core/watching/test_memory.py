"""What is remembered of a partition from reading to reading."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.watching.memory import CHANGES_MAX, POINTS_MAX, RATE_SPAN_S, Memory, remember
from tests.unit.eventproc._core.watching.readings import end, group, partition, watched


def after(*partitions, every_s=2):
    """Return the memory of one partition after successive readings of it."""
    readings = [group(100 + every_s * n, [p]) for n, p in enumerate(partitions)]
    return watched(readings)[0]["0"]


def test_the_first_reading_knows_how_long_something_has_lasted():
    """By the age of the checkpoint, of the newest event, and of a released record."""
    p = partition("0", None, renewed_ago_s=7, written_ago_s=40, end=end(100, 12, newest_ago_s=5))
    known = after(p)

    assert (known.moved_at_s, known.works_since_s, known.unserved_since_s) == (60, 95, 93)


def test_a_written_checkpoint_is_no_progress_unless_it_moves():
    """A new owner writes the checkpoint that it found back unchanged."""
    known = after(partition("0", written_ago_s=40), partition("0", "b", written_ago_s=0))

    assert (known.moved_at_s, known.owners_since_move) == (60, 1)


def test_progress_resets_what_is_counted_until_it():
    """The owners before it got somewhere."""
    known = after(partition("0"), partition("0", "b"), partition("0", "c", position=11))

    assert (known.moved_at_s, known.owner_since_s, known.owners_since_move) == (104, 104, 0)


def test_work_lasts_from_the_first_reading_that_has_it_until_one_that_has_none():
    """Whether it is the same work is not asked: the checkpoint's own time tells that."""
    busy, idle = partition("0", end=end(100, 12)), partition("0", end=end(100, 10))

    assert after(idle, busy, busy).works_since_s == 102
    assert after(busy, idle).works_since_s is None
    assert after(busy, idle, busy).works_since_s == 104


def test_an_expired_lease_is_no_owner():
    """As a partition without an owner."""
    expired = partition("0", is_expired=True)

    assert after(partition("0"), expired, expired).unserved_since_s == 102
    assert after(partition("0"), expired, partition("0")).unserved_since_s is None


def test_rates_begin_anew_after_a_pause_of_the_readings():
    """A page that was closed for minutes shows no average over them; one that is slow has one."""
    at_s = {"pause": [100, 110, 150], "slow": [100, 150, 200], "short": [100, 110, 130]}
    drains = {
        name: watched(
            [
                group(s, [partition("0", position=position)])
                for s, position in zip(times, (1, 2, 300), strict=True)
            ]
        )[0]["0"].drain_per_s
        for name, times in at_s.items()
    }

    assert drains["pause"] is None
    assert None not in (drains["slow"], drains["short"])


def test_rates_are_averages_between_the_oldest_and_the_newest_point():
    """Of what arrived and of what the checkpoint moved over."""
    first = partition("0", position=10, end=end(100, 20))
    second = partition("0", position=30, end=end(110, 60, 30))
    known = watched([group(100, [first]), group(110, [second])])[0]["0"]

    assert (known.arrival_per_s, known.drain_per_s) == (4, 2)


def test_without_two_points_there_is_no_rate():
    """Nor of what the hub was not asked for."""
    assert after(partition("0", end=end(100, 20))).arrival_per_s is None
    assert after(partition("0"), partition("0")).arrival_per_s is None
    assert after(partition("0"), partition("0")).drain_per_s == 0


def test_a_hub_that_was_made_anew_has_no_negative_rate():
    """The sequence numbers begin again."""
    known = watched(
        [
            group(100, [partition("0", end=end(100, 500))]),
            group(110, [partition("0", end=end(110, 3, 2), position=2)]),
        ]
    )[0]["0"]

    assert (known.arrival_per_s, known.drain_per_s) == (0, 0)


def test_a_partition_that_is_gone_is_forgotten():
    """The memory has those of the newest reading alone."""
    assert set(watched([group(1, [partition("0")]), group(2, [partition("1")])])[0]) == {"1"}


@given(st.lists(st.tuples(st.floats(0.1, 10), st.sampled_from("ab")), min_size=1, max_size=60))
def test_a_partition_needs_bounded_memory(steps):
    """However often it is read, and its owner changes."""
    memory: Memory = {}
    at_s = 100.0
    for step_s, owner_id in steps:
        at_s += step_s
        memory = remember(memory, group(at_s, [partition("0", owner_id)]))
        known = memory["0"]

        assert len(known.points) <= POINTS_MAX
        assert len(known.changes) <= CHANGES_MAX
        # One older point is kept, so that the points cover the whole span.
        points = known.points
        assert len(points) < 3 or points[-1].at_s - points[1].at_s < RATE_SPAN_S
