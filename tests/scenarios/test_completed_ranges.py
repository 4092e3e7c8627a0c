"""A position, and completed ranges above it, over restarts: of key lanes, and of one lane."""

from ast import literal_eval
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.progress import PartitionProgress
from tests.unit.eventproc._core.events import event, events, numbers
from tests.unit.eventproc._core.progresses import histories, ranges, restored, snapshot, stored


def lanes(admitted=(), **settings) -> PartitionProgress:
    """The progress of several key lanes, with these events received."""
    progress = PartitionProgress(has_state=False, **settings)
    if admitted:
        progress.admit(events(admitted))
    return progress


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
    assert progress.done(events([1])) == 1
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

    assert not progress.admit(events([1, 2, 3]))
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

    kept = [each for run in progress._window._runs for each in run.events]
    assert [each.sequence_number for each in kept] == [1, 2]
    assert not [each for each in kept if hasattr(each, "body")]


def covered(number: int, completed) -> bool:
    """Whether one of the ranges contains the number."""
    return any(first <= number <= last for first, last in completed)


def test_without_a_state_one_lane_stores_what_is_done_above_an_event_that_is_not():
    """So a stop while that event is retried delivers no other one again. Each counts once."""
    progress = restored()
    progress.admit(events([1, 2, 3, 4, 6]))

    assert progress.done(events([1]), events([3, 4, 6])) == 4
    assert stored(progress) == (1, None)
    assert ranges(progress) == [(3, 6)]
    assert progress.done(events([2])) == 1
    assert stored(progress) == (6, None)
    assert ranges(progress) == []


def test_only_what_was_done_before_the_first_state_is_stored_above_an_event_that_is_not():
    """What is done later is in the state, which is stored with a position that it fits."""
    progress = restored()
    progress.admit(events([1, 2, 3, 4, 5]))
    progress.done(events([2, 4]))
    progress.begin_call()
    progress.state = b"with 3"

    assert progress.done(events([3])) == 0
    progress.end_call(keeps_state=True)
    assert stored(progress) == (0, None)
    assert ranges(progress) == [(2, 2), (4, 4)]
    assert progress.done(events([1])) == 2
    assert stored(progress) == (4, b"with 3")


def test_what_is_done_above_an_event_that_is_not_is_new_to_store():
    """Although the position is the same. To do it again is not new."""
    progress = restored()
    progress.admit(events([1, 2, 3]))
    before = progress.revision
    progress.done(events([2]))
    between = progress.revision
    progress.done(events([2]))

    assert before < between == progress.revision


def test_no_position_passes_an_event_that_is_not_done_without_a_state_either():
    """``context.done`` of a later event is refused until the earlier one is done."""
    progress = restored()
    progress.admit(events([1, 2, 3]))
    progress.done(events([2]))

    assert not progress.done_through(event(3))
    assert stored(progress) == (0, None)
    progress.done(events([1]))
    assert progress.done_through(event(3))


@given(histories(), st.booleans())
def test_position_and_ranges_cover_exactly_the_completed_events(history, has_state):
    """In every order of completion, with key lanes and in one lane that never had a state."""
    found, before, order = history
    progress = restored([(n, n) for n in sorted(before)], has_state=has_state)
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
        handled_now = sorted(n for n in cut if n in admitted)
        progress.done(events(handled_now))
        handled |= set(handled_now)
        number = progress.sequence_number
        last_lap = has_state and cut != found
        progress = restored(ranges(progress), number=number, has_state=last_lap)
        if last_lap:
            break
    progress.done(progress.admit(events(found)))
    assert snapshot(progress).sequence_number == found[-1]


@given(histories(), st.sets(st.integers(0, 39)))
def test_a_restart_loses_and_counts_nothing_twice_whenever_the_state_begins(history, with_state):
    """The state here is the set of events done by the calls that set one."""
    found, _, order = history
    progress = restored()
    progress.admit(events(found))
    counted: set[int] = set()
    for index, number in enumerate(order):
        progress.begin_call()
        if index in with_state:
            counted.add(number)
            progress.state = repr(sorted(counted)).encode()
        progress.done(events([number]))
        progress.end_call(keeps_state=True)

    position, state = stored(progress)
    successor = restored(ranges(progress), number=position)
    later = [n for n in found if n > position]
    again = set(numbers(successor.admit(events(later)))) if later else set()
    in_state = set(literal_eval((state or b"[]").decode()))
    assert set(found) - set(order) <= again
    assert in_state.isdisjoint(again)
    assert counted <= in_state | again
    if not counted:
        assert again == set(found) - set(order)
