"""How far a partition is handled: position, completed ranges, state and delivery count."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.progress import PartitionProgress, ProgressSnapshot
from eventproc.models import Checkpoint, SequenceRange
from tests.unit.eventproc.core.events import event, events, numbers


def lanes(admitted=(), **settings) -> PartitionProgress:
    """The progress of several key lanes, with these events received."""
    progress = PartitionProgress(has_state=False, **settings)
    if admitted:
        progress.admit(events(admitted))
    return progress


def serial(admitted=()) -> PartitionProgress:
    """The progress of one lane with a state, which is ``b"old"``, with these events received."""
    progress = PartitionProgress()
    progress.state = b"old"
    if admitted:
        progress.admit(events(admitted))
    return progress


def restored(
    completed=(), *, number: int | None = 0, has_state: bool = True, **fields
) -> PartitionProgress:
    """Progress that continues from a checkpoint."""
    progress = PartitionProgress(has_state=has_state)
    progress.restore(
        Checkpoint(
            partition_id="0",
            offset=None if number is None else f"o{number}",
            sequence_number=number,
            completed=tuple(SequenceRange(*ends) for ends in completed),
            etag="1",
            last_modified=datetime.now(UTC),
            **fields,
        )
    )
    return progress


def snapshot(progress: PartitionProgress) -> ProgressSnapshot:
    """What would be stored now; there is something."""
    found = progress.snapshot()
    assert found is not None
    return found


def ranges(progress: PartitionProgress) -> list[tuple[int, int]]:
    """The completed ranges that would be stored now."""
    return [(found.first, found.last) for found in snapshot(progress).completed]


def stored(progress: PartitionProgress) -> tuple[int, bytes | None]:
    """The position and the state that would be stored now."""
    found = snapshot(progress)
    return found.sequence_number, found.state


# One lane, with a state.


def test_without_a_position_there_is_nothing_to_store():
    """Neither before the first event, nor where only a sequence number is known."""
    assert PartitionProgress().snapshot() is None
    assert not restored(number=None).has_position
    assert serial([0]).snapshot() is None


def test_the_position_moves_with_the_events_done_and_has_their_state():
    """A whole batch at once, or the first events of it."""
    progress = serial([1, 2, 3, 4])
    progress.begin_call()
    progress.state = b"two"

    assert progress.done(events([1, 2])) == 2
    assert stored(progress) == (2, b"two")
    progress.state = b"four"
    assert stored(progress) == (2, b"two")
    assert progress.done(events([3, 4])) == 2
    assert stored(progress) == (4, b"four")
    assert (progress.offset, progress.state_sequence_number) == ("o4", 4)
    assert (progress.window_size, progress.unfinished_count) == (0, 0)


def test_an_event_is_counted_once_however_often_it_is_done():
    """``done`` returns by how many events the next snapshot covers more."""
    progress = serial([1, 2, 3])

    assert progress.done(events([1])) == 1
    assert progress.done(events([1, 2])) == 1
    assert progress.done(events([1, 2])) == 0
    assert progress.done(events([1, 2, 3])) == 1
    assert progress.done(()) == 0


def test_a_failed_call_restores_the_state_of_the_last_event_done():
    """Not the state of before the call, if it completed an event."""
    progress = serial([1, 2])
    progress.begin_call()
    progress.state = b"lost"
    progress.end_call(keeps_state=False)

    assert progress.state == b"old"
    progress.begin_call()
    progress.state = b"one"
    progress.done(events([1]))
    progress.state = b"lost"
    progress.end_call(keeps_state=False)
    assert progress.state == b"one"
    assert stored(progress) == (1, b"one")


def test_a_successful_call_without_events_keeps_its_state():
    """The state belongs to the position from then on."""
    progress = restored()
    progress.begin_call()
    progress.state = b"idle"
    assert stored(progress) == (0, None)
    progress.end_call(keeps_state=True)

    assert stored(progress) == (0, b"idle")


def test_a_state_set_outside_of_a_call_belongs_to_the_position():
    """As in ``close``, which is no call that could be repeated."""
    progress = restored()
    progress.state = b"last"

    assert stored(progress) == (0, b"last")


def test_the_position_waits_while_a_later_event_is_done_and_an_earlier_one_is_not():
    """The state covers the later event, so it fits no position in between."""
    progress = serial([1, 2, 3])
    progress.done(events([1]))
    progress.begin_call()
    progress.state = b"three"

    assert progress.done(events([3])) == 0
    progress.end_call(keeps_state=True)
    assert progress.state == b"three"
    assert stored(progress) == (1, b"old")
    assert numbers(progress.unhandled(events([1, 2, 3]))) == [2]
    progress.begin_call()
    assert not progress.done_through(event(2))
    progress.state = b"all"
    assert progress.done(events([2])) == 2
    assert stored(progress) == (3, b"all")


def test_a_failed_call_returns_to_the_state_that_covers_the_later_event():
    """What was done out of order is not done again, so the state must keep it."""
    progress = serial([1, 2])
    progress.begin_call()
    progress.state = b"two"
    progress.done(events([2]))
    progress.end_call(keeps_state=True)
    progress.begin_call()
    progress.state = b"lost"
    progress.end_call(keeps_state=False)

    assert progress.state == b"two"


def test_after_the_earlier_event_is_done_the_position_follows_each_event_again():
    """Also by ``done_through``."""
    progress = serial([1, 2])
    progress.done(events([2]))
    progress.done(events([1]))
    progress.admit(events([3, 4]))

    assert progress.done_through(event(3))
    progress.admit(events([5]))
    progress.done(events([5]))
    progress.done(events([4]))
    assert snapshot(progress).sequence_number == 5
    progress.admit(events([6]))
    assert progress.done_through(event(6))


def test_events_done_one_after_the_other_are_counted_when_they_are_settled():
    """Between the two, a handler's thread has moved the position and nothing else."""
    progress = serial([1, 2, 3, 4])

    assert progress.done_through(event(2))
    assert not progress.done_through(event(1))
    assert not progress.is_unhandled(event(2))
    assert snapshot(progress).sequence_number == 2
    assert progress.window_size == 4
    assert progress.settle() == 2
    assert progress.settle() == 0
    assert progress.done_through(event(3))
    assert progress.done(events([3, 4])) == 2


def test_an_event_that_was_not_admitted_is_refused():
    """It is of another partition, or of a later batch."""
    with pytest.raises(ValueError, match="event 2 was not admitted"):
        serial([1]).done_through(event(2))


def test_an_event_is_admitted_once():
    """A receiver that is opened again may begin earlier than it was asked to."""
    progress = serial([1, 2])

    assert numbers(progress.admit(events([0, 1, 2, 3]))) == [3]
    assert progress.admit(events([2, 3])) == ()
    assert progress.window_size == 3


def test_with_a_state_completed_ranges_of_a_former_owner_are_passed_too():
    """A partition that key lanes served before: its completed events are not handled again."""
    progress = restored([(2, 3), (6, 6), (9, 9)], state=b"old")

    assert numbers(progress.admit(events([1, 2, 3, 4, 5, 6]))) == [1, 4, 5]
    progress.done(events([1]))
    assert (snapshot(progress).sequence_number, ranges(progress)) == (3, [(6, 6), (9, 9)])
    progress.done_through(event(5))
    assert (snapshot(progress).sequence_number, ranges(progress)) == (5, [(6, 6), (9, 9)])
    assert progress.done(events([4, 5])) == 3
    assert (snapshot(progress).sequence_number, ranges(progress)) == (6, [(9, 9)])


# The delivery count.


def test_progress_limits_the_delivery_count():
    """The events after a new position were not delivered alone yet."""
    progress = restored(delivery_count=4)
    progress.admit(events([1]))
    progress.done(events([1]))

    assert snapshot(progress).delivery_count == 2


def test_passing_the_events_of_a_former_owner_keeps_the_delivery_count():
    """The next event is as suspect as before."""
    progress = restored([(1, 2)], delivery_count=4)
    progress.admit(events([1, 2, 3]))

    assert snapshot(progress).sequence_number == 2
    assert snapshot(progress).delivery_count == 4


def test_only_changes_raise_the_revision():
    """What equals the stored checkpoint is not written again."""
    progress = restored(delivery_count=1, state=b"s")
    assert progress.revision == 0
    progress.count_delivery(1)
    progress.state = progress.state
    progress.begin_call()
    progress.end_call(keeps_state=True)
    progress.admit(events([1, 2]))
    assert progress.revision == 0
    seen = [0]
    for change in (
        lambda: progress.count_delivery(2),
        lambda: progress.done_through(event(1)),
        lambda: progress.done(events([2])),
        lambda: setattr(progress, "state", b"new"),
        lambda: progress.pin(7, "o7"),
    ):
        change()
        seen.append(snapshot(progress).revision)

    assert all(earlier < later for earlier, later in pairwise(seen))


def test_a_pinned_position_is_where_events_are_admitted_after():
    """As the end of the partition, for a first owner that begins there."""
    progress = PartitionProgress()
    progress.pin(4, "o4")

    assert numbers(progress.admit(events([4, 5]))) == [5]
    assert snapshot(progress).offset == "o4"


# Key lanes, without a state.


def finished(progress: PartitionProgress, done) -> tuple[int | None, list[tuple[int, int]]]:
    """Complete these events; return the position and the completed ranges above it."""
    progress.done(events(done))
    return progress.sequence_number, ranges(progress)


def test_the_position_waits_for_the_slowest_event():
    """Events completed above it are listed as ranges until the position reaches them."""
    progress = restored(has_state=False)
    progress.admit(events(range(1, 7)))

    assert finished(progress, [2, 4, 5]) == (0, [(2, 2), (4, 5)])
    assert finished(progress, [1]) == (2, [(4, 5)])
    assert progress.offset == "o2"
    assert progress.enqueued_time is not None
    assert finished(progress, [3]) == (5, [])
    assert (progress.window_size, progress.unfinished_count) == (1, 1)


def test_each_event_that_is_done_above_the_position_counts():
    """It is stored, as a range."""
    progress = restored(has_state=False)
    progress.admit(events([1, 2, 3]))
    before = progress.revision

    assert progress.done(events([2, 3])) == 2
    assert progress.revision > before
    assert progress.done(events([2])) == 0
    assert progress.done(events([1, 2])) == 1
    assert snapshot(progress).sequence_number == 3


def test_two_events_of_one_key_do_not_pass_one_of_another_key():
    """Although the call has as many events as the window, and they end with the same one."""
    progress = restored(has_state=False)
    progress.admit(events([1, 2, 3]))
    progress.done(events([1]))
    progress.done(events([1, 3]))

    assert (progress.sequence_number, ranges(progress)) == (1, [(3, 3)])


def test_without_a_state_done_through_does_nothing():
    """Events below the event may be under way."""
    progress = lanes([1, 2])

    assert not progress.done_through(event(2))
    assert progress.unfinished_count == 2


def test_without_a_state_the_stored_one_stays():
    """It was written by a processor without lanes; ``None`` leaves it alone."""
    progress = restored(has_state=False, state=b"kept", state_sequence_number=0)
    progress.admit(events([1]))
    progress.done(events([1]))

    assert stored(progress) == (1, None)
    assert (progress.state, progress.state_sequence_number) == (b"kept", 0)


def test_after_a_restart_events_in_restored_ranges_are_not_admitted():
    """Ranges above the newest event are kept, and stored again, until that is above them."""
    progress = restored([(4, 5), (8, 9)], number=2, has_state=False)

    assert numbers(progress.admit(events(range(1, 8)))) == [3, 6, 7]
    assert finished(progress, [6, 7]) == (2, [(4, 7), (8, 9)])
    assert finished(progress, [3]) == (7, [(8, 9)])


def test_the_position_passes_restored_ranges_at_the_end():
    """Without waiting for an event after them."""
    progress = restored([(1, 3)], has_state=False)

    assert progress.admit(events([1, 2, 3])) == []
    assert (progress.sequence_number, progress.window_size) == (3, 0)


def test_a_range_spans_gaps_between_sequence_numbers():
    """A hub may leave numbers out."""
    progress = restored(has_state=False)
    progress.admit(events([10, 20, 30, 40]))

    assert finished(progress, [20, 30]) == (0, [(20, 30)])
    assert finished(progress, [10]) == (30, [])


def test_ranges_max_keeps_the_lowest_ranges():
    """Events in the ranges left out are handled again after a restart."""
    progress = lanes(ranges_max=3)
    progress.pin(0, "o0")
    progress.admit(events(range(1, 21)))

    assert finished(progress, range(2, 21, 2))[1] == [(2, 2), (4, 4), (6, 6)]


def test_no_body_is_kept_of_an_event_above_the_position():
    """One slow key would fill the memory with the events of the others."""
    progress = lanes([1, 2])

    assert not [kept for kept in progress._window if hasattr(kept, "body")]


@st.composite
def histories(draw):
    """Draw events with gaps, those completed before, and an order in which to complete the rest."""
    steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=40))
    found = [sum(steps[: i + 1]) for i in range(len(steps))]
    before = draw(st.sets(st.sampled_from(found)))
    order = draw(st.permutations(found))
    return found, before, order[: draw(st.integers(0, len(order)))]


def covered(number: int, completed) -> bool:
    """Whether one of the ranges contains the number."""
    return any(first <= number <= last for first, last in completed)


@given(histories())
def test_position_and_ranges_cover_exactly_the_completed_events(history):
    """In every order of completion."""
    found, before, order = history
    progress = restored([(n, n) for n in sorted(before)], has_state=False)
    admitted = set(numbers(progress.admit(events(found))))
    done = set(before)

    assert admitted == set(found) - before
    for number in order:
        progress.done(events([number]))
        done.add(number)
        position, every = progress.sequence_number or 0, ranges(progress)
        covered_numbers = {n for n in found if n <= position or covered(n, every)}

        assert covered_numbers == done
        assert all(first > position for first, _ in every)
        assert all(a[1] < b[0] for a, b in pairwise(every))
        assert progress.unfinished_count == len(set(found) - done)


@given(histories(), st.booleans())
def test_events_are_handled_once_over_several_restarts(history, has_state):
    """Each process restores the position and ranges of the one before, and admits the rest."""
    found, before, order = history
    progress = restored([(n, n) for n in sorted(before)], has_state=False)
    handled = set(before)
    for cut in (order[: len(order) // 2], order[len(order) // 2 :], found):
        admitted = numbers(progress.admit(events(found)))

        assert not handled & set(admitted)
        handled_now = [n for n in cut if n in admitted]
        progress.done(events(handled_now))
        handled |= set(handled_now)
        number = progress.sequence_number
        last_lap = has_state and cut != found
        progress = restored(ranges(progress), number=number, has_state=last_lap)
        if last_lap:
            break
    progress.done(progress.admit(events(found)))
    assert snapshot(progress).sequence_number == found[-1]


@given(histories())
def test_with_a_state_the_position_is_always_one_that_the_state_fits(history):
    """The state here is the set of events done: it is stored only with exactly those below."""
    found, _, order = history
    progress = restored()
    progress.admit(events(found))
    done: set[int] = set()
    passed_count = 0
    for number in order:
        progress.begin_call()
        done.add(number)
        progress.state = repr(sorted(done)).encode()
        passed_count += progress.done(events([number]))
        progress.end_call(keeps_state=True)
        position, state = stored(progress)
        below = [n for n in found if n <= position]

        assert state == (repr(below).encode() if below else None)
        assert passed_count == len(below)
        is_prefix = sorted(done) == found[: len(done)]
        assert (position == max(done)) == is_prefix
