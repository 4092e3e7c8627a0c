"""How far one lane with a state is: position, state, isolation, completed ranges."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.progress import PartitionProgress
from eventproc.models import IN_BATCH, IN_PART, alone
from tests.unit.eventproc._core.events import event, events, numbers
from tests.unit.eventproc._core.progresses import histories, ranges, restored, snapshot, stored


def serial(admitted=()) -> PartitionProgress:
    """The progress of one lane with a state, which is ``b"old"``, with these events received."""
    progress = PartitionProgress()
    progress.state = b"old"
    if admitted:
        progress.admit(events(admitted))
    return progress


def test_without_a_position_there_is_nothing_to_store():
    """Neither before the first event, nor where only a sequence number is known."""
    assert PartitionProgress().snapshot() is None
    assert not restored(number=None).has_position
    assert not restored(number=5, has_offset=False).has_position
    assert restored(number=5, has_offset=False).snapshot() is None
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
    assert (stored(progress), ranges(progress)) == ((1, b"old"), [])
    assert numbers(progress.unhandled(events([1, 2, 3]))) == [2]
    progress.begin_call()
    assert not progress.done_through(event(2))
    progress.state = b"all"
    assert progress.done(events([2])) == 2
    assert stored(progress) == (3, b"all")


def test_the_position_waits_for_an_earlier_event_if_a_later_one_has_cleared_the_state():
    """The stored state would not fit the later event."""
    progress = serial([1, 2, 3])
    progress.done(events([1]))
    progress.begin_call()
    progress.state = b""

    assert progress.done(events([3])) == 0
    progress.end_call(keeps_state=True)
    assert (stored(progress), ranges(progress)) == ((1, b"old"), [])


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


def test_a_call_that_fails_after_a_later_event_returns_to_the_state_that_covers_it():
    """``done`` may be called for it in the call itself, and again for what is done already."""
    progress = serial([1, 2])
    progress.begin_call()
    progress.state = b"two"
    progress.done(events([2]))
    progress.state = b"lost"
    assert progress.done(events([2])) == 0
    progress.end_call(keeps_state=False)

    assert progress.state == b"two"


def test_several_parts_are_done_together():
    """They count as one step."""
    progress = serial([1, 2, 3, 4])

    assert progress.done(events([1]), events([2])) == 2
    assert progress.done() == 0
    assert progress.done(events([3]), events([4])) == 2
    assert snapshot(progress).sequence_number == 4


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
    assert not progress.done_through(event(2))
    assert not progress.done_through(event(1))
    assert not progress.is_unhandled(event(2))
    assert snapshot(progress).sequence_number == 2
    assert progress.window_size == 4
    assert progress.count_passed() == 2
    assert progress.count_passed() == 0
    assert progress.done_through(event(3))
    assert progress.done(events([3, 4])) == 2


def test_the_position_does_not_go_back_to_an_event_below_it():
    """An event that ``done_through`` passed is reported again, before it was settled."""
    progress = serial([1, 2, 3])
    progress.done_through(event(2))

    assert progress.done(events([1])) == 2
    assert snapshot(progress).sequence_number == 2


def test_a_failed_call_returns_to_the_state_of_the_event_that_it_passed_last():
    """Not to the one that it had when the event was settled."""
    progress = serial([1, 2])
    progress.begin_call()
    progress.state = b"one"
    progress.done_through(event(1))
    progress.state = b"lost"
    assert progress.done(events([1])) == 1
    progress.end_call(keeps_state=False)

    assert stored(progress) == (1, b"one")
    assert progress.state == b"one"


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


def test_an_event_that_a_former_owner_completed_moves_no_position():
    """Events below it may be waiting: only those that were given to the handler say so."""
    progress = restored([(2, 3)], state=b"old")
    progress.admit(events([1, 2, 3, 4]))

    assert not progress.done_through(event(2))
    assert not progress.done_through(event(3))
    assert progress.done_through(event(1))
    assert progress.done_through(event(4))


# The isolation.


def test_progress_limits_the_isolation():
    """The events after a new position were not delivered alone yet."""
    progress = restored(isolation=alone(2))
    progress.admit(events([1]))
    progress.done(events([1]))

    assert snapshot(progress).isolation == IN_PART


def test_passing_the_events_of_a_former_owner_keeps_the_isolation():
    """The next event is as suspect as before."""
    progress = restored([(1, 2)], isolation=alone(2))
    progress.admit(events([1, 2, 3]))

    assert snapshot(progress).sequence_number == 2
    assert snapshot(progress).isolation == alone(2)


def test_only_changes_raise_the_revision():
    """What equals the stored checkpoint is not written again."""
    progress = restored(isolation=IN_BATCH, state=b"s")
    assert progress.revision == 0
    progress.set_isolation(IN_BATCH)
    progress.state = progress.state
    progress.begin_call()
    progress.end_call(keeps_state=True)
    progress.admit(events([1, 2]))
    assert progress.revision == 0
    seen = [0]
    for change in (
        lambda: progress.set_isolation(IN_PART),
        lambda: progress.done_through(event(1)),
        lambda: progress.done(events([2])),
        lambda: setattr(progress, "state", b"new"),
        lambda: progress.pin(7, "o7"),
    ):
        change()
        seen.append(snapshot(progress).revision)

    assert all(earlier < later for earlier, later in pairwise(seen))


def test_a_position_has_the_time_of_the_event_that_was_handled():
    """A checkpoint does not have it."""
    progress = restored()
    assert progress.enqueued_time is None
    first = event(1)
    progress.admit([first])
    progress.done([first])

    assert progress.enqueued_time == first.enqueued_time


def test_a_pinned_position_is_where_events_are_admitted_after():
    """As the end of the partition, for a first owner that begins there."""
    progress = PartitionProgress()
    progress.pin(4, "o4")

    assert numbers(progress.admit(events([4, 5]))) == [5]
    assert snapshot(progress).offset == "o4"


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


@given(histories(), st.booleans(), st.integers(0, 10))
def test_what_a_transaction_would_store_is_what_is_stored_after_it(history, has_state, cut):
    """And asking for it changes nothing: the transaction may fail."""
    found, _, order = history
    progress = restored(has_state=has_state)
    progress.admit(events(found))
    before = sorted(order[:cut]) if not has_state else found[:cut]
    if before:
        progress.done(events(before))
    left = [n for n in found if n not in before]
    part = events(left[:3])
    progress.begin_call()
    if has_state:
        progress.state = b"new"
    now = progress.snapshot()
    expected = progress.after(part)

    assert progress.snapshot() == now
    assert expected is not None
    assert expected.revision == progress.revision
    progress.done_in_call(part)
    stored_after = snapshot(progress)
    assert replace(stored_after, revision=expected.revision) == expected
    assert not any(progress.is_unhandled(event) for event in part)
    progress.end_call(keeps_state=False)
    assert snapshot(progress) == stored_after


def test_a_transaction_above_an_event_that_is_not_done_cannot_be_stored_with_a_state():
    """The position could not show it, so the event would be handled again."""
    progress = restored()
    progress.admit(events([1, 2]))

    assert progress.after(events([2])) is None
    assert restored(number=None, has_state=False).after([]) is None


def test_a_transaction_with_an_event_that_was_not_admitted_cannot_be_stored():
    """Without a state either: no range would show that it is done."""
    assert restored(has_state=False).after(events([1])) is None
