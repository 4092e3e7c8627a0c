"""How far one partition is handled: what a checkpoint stores. The same for one lane and for many.

Rule 1: the position is the last event up to which every event is done.
Rule 2: a state belongs to exactly one position. So with a state, the position stays while an event
above it is done and an earlier one is not: the state covers the later event already.
Rule 3: without a state (several key lanes), events done above the position are stored as ranges,
the lowest ``COMPLETED_RANGES_MAX``. Events of ranges that do not fit are handled again after a
restart, never skipped.
Rule 4: events that a former owner completed are not handled again, with a state or without.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from eventproc.core.checkpoint_rules import completed_above
from eventproc.core.deliveries import mark_after_progress
from eventproc.models import COMPLETED_RANGES_MAX, Checkpoint, ReceivedEvent, SequenceRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSnapshot:
    """What the next checkpoint stores."""

    sequence_number: int
    offset: str
    state: bytes | None
    """``None`` leaves the stored state alone."""

    completed: tuple[SequenceRange, ...]
    """Ranges done above ``sequence_number``: sorted, disjoint, ``COMPLETED_RANGES_MAX`` at most.
    """

    delivery_count: int
    """The delivery count stored with the position; see ``core.deliveries``."""

    revision: int
    """The ``revision`` of the progress that it was taken of."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A position, and what belongs to exactly that position.

    Frozen and replaced as a whole, because handler threads read and replace it at any time.
    """

    sequence_number: int | None = None
    offset: str | None = None
    enqueued_time: datetime | None = None
    state: bytes | None = None
    state_sequence_number: int | None = None
    delivery_count: int = 0
    revision: int = 0


@dataclass(frozen=True, slots=True)
class _Mark:
    """What has to be known of an event to move the position to it; the event has its body too."""

    sequence_number: int
    offset: str
    enqueued_time: datetime


class PartitionProgress:
    """Which events of one partition are done, with the handler's state and the delivery count.

    ``done_through``, ``state`` and the properties may be used by a handler's thread; everything
    else only by the event loop of the pump.
    """

    def __init__(self, *, has_state: bool = True, ranges_max: int = COMPLETED_RANGES_MAX) -> None:
        """Begin without a position; *has_state* is false if several events are handled at once."""
        self.has_state = has_state
        self._ranges_max = ranges_max
        self._place = _Place()
        self._restored: tuple[SequenceRange, ...] = ()
        self._newest = -1
        self._window: deque[ReceivedEvent | _Mark] = deque()
        """The admitted events above the position."""

        self._done: set[int] = set()
        """Which of them are done."""

        self._state: bytes | None = None
        self._kept_state: bytes | None = None
        """The handler's state now, and the one to return to if the call under way fails."""

        self._is_in_call = False
        self._is_held = False
        """Whether the state covers an event above one that is not done."""

    @property
    def sequence_number(self) -> int | None:
        """The position; -1 before the first event, ``None`` where it is not known."""
        return self._place.sequence_number

    @property
    def offset(self) -> str | None:
        """The offset of the position, where one is known."""
        return self._place.offset

    @property
    def enqueued_time(self) -> datetime | None:
        """When the event at the position was enqueued; ``None`` until an event was handled."""
        return self._place.enqueued_time

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the state of the position was written with."""
        return self._place.state_sequence_number

    @property
    def delivery_count(self) -> int:
        """The delivery count of the events after the position; see ``core.deliveries``."""
        return self._place.delivery_count

    @property
    def revision(self) -> int:
        """A number that rises with each change of what ``snapshot`` returns."""
        return self._place.revision

    @property
    def has_position(self) -> bool:
        """Whether there is a position to store."""
        place = self._place
        return place.sequence_number is not None and place.offset is not None

    @property
    def window_size(self) -> int:
        """How many admitted events lie above the position, done or not."""
        return len(self._window)

    @property
    def unfinished_count(self) -> int:
        """How many events were admitted and are not done."""
        return len(self._window) - len(self._done)

    @property
    def state(self) -> bytes | None:
        """The handler's state now. Set outside of a call, it belongs to the position at once."""
        return self._state

    @state.setter
    def state(self, value: bytes | None) -> None:
        self._state = value
        if not self._is_in_call:
            self._keep_state()

    def snapshot(self) -> ProgressSnapshot | None:
        """Return what to store now; ``None`` without a position."""
        place = self._place  # Read once: a handler thread may replace it at any moment.
        if place.sequence_number is None or place.offset is None:
            return None
        return ProgressSnapshot(
            sequence_number=place.sequence_number,
            offset=place.offset,
            state=place.state if self.has_state else None,
            completed=self._completed(place.sequence_number),
            delivery_count=place.delivery_count,
            revision=place.revision,
        )

    # Where it begins.

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a stored checkpoint; that is no change that would have to be stored."""
        self._place = _Place(
            checkpoint.sequence_number,
            checkpoint.offset,
            None,
            checkpoint.state,
            checkpoint.state_sequence_number,
            checkpoint.delivery_count,
            self._place.revision,
        )
        self._state = self._kept_state = checkpoint.state
        self._restored = checkpoint.completed
        self._newest = -1 if checkpoint.sequence_number is None else checkpoint.sequence_number

    def pin(self, sequence_number: int, offset: str) -> None:
        """Set the position to begin after, where no checkpoint gives one."""
        self._change(sequence_number=sequence_number, offset=offset)
        self._newest = sequence_number

    def count_delivery(self, delivery_count: int) -> None:
        """Set the delivery count of the events after the position; see ``core.deliveries``."""
        if delivery_count != self._place.delivery_count:
            self._change(delivery_count=delivery_count)

    # Events.

    def admit(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        """Note that these events were received, in order; return those that are to be handled.

        Events that were admitted before are left out, and so are those that a former owner
        completed. The position passes the latter.
        """
        if events[0].sequence_number <= self._newest:
            events = [event for event in events if event.sequence_number > self._newest]
            if not events:
                return ()
        self._newest = events[-1].sequence_number
        # Marks, because bodies of done events would fill the memory while one key is slow.
        self._window.extend(events if self.has_state else map(_mark, events))
        if not self._restored or events[0].sequence_number > self._restored[-1].last:
            return events
        completed = {e.sequence_number for e in events if self._was_completed(e.sequence_number)}
        self._done |= completed
        delivery_count = self.delivery_count
        self._rise()
        self.count_delivery(delivery_count)  # The next event is as suspect as before.
        return [event for event in events if event.sequence_number not in completed]

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is still to be handled."""
        handled, number = self._place.sequence_number, event.sequence_number
        return (handled is None or number > handled) and number not in self._done

    def unhandled(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        """Return those of these events, in order, that are still to be handled."""
        handled = self._place.sequence_number
        if not events or (handled is not None and events[-1].sequence_number <= handled):
            return ()
        return tuple(event for event in events if self.is_unhandled(event))

    def done(self, events: Sequence[ReceivedEvent]) -> int:
        """Note that these admitted events are done, and that the state includes them.

        Returns the number of events that the next snapshot covers and none before it did.
        """
        window = self._window
        # Events that are a whole window need not be looked at one by one.
        if (
            not self._done
            and 0 < len(events) == len(window)
            and events[0].sequence_number == window[0].sequence_number
        ):
            window.clear()
            self._is_held = False
            self._move(events[-1])
            return len(events)
        new = {event.sequence_number for event in self.unhandled(events)}
        self._done |= new
        if new:
            self._kept_state = self._state
        passed_count = self._rise()
        if self.has_state:
            return passed_count
        if new and not passed_count:
            self._change()  # Only the ranges above the position.
        return len(new)

    def done_through(self, event: ReceivedEvent) -> bool:
        """Note that every event up to this one is done; return whether that moved the position.

        Only with a state: without, events below it may be under way. ``settle`` has to follow on
        the event loop, because handler threads call this as well.

        Raises:
            ValueError: the event was not admitted.
        """
        if event.sequence_number > self._newest:
            raise ValueError(f"event {event.sequence_number} was not admitted")
        if self._is_held or not self.has_state or not self.is_unhandled(event):
            return False
        self._move(event)
        return True

    def settle(self) -> int:
        """Return how many events ``done_through`` passed since the last call."""
        handled, count = self._place.sequence_number, 0
        while self._window and handled is not None and self._window[0].sequence_number <= handled:
            self._done.discard(self._window.popleft().sequence_number)
            count += 1
        return count

    def advance(
        self, sequence_number: int, offset: str, enqueued_time: datetime | None = None
    ) -> None:
        """Move the position: everything up to it is done, and the state includes it."""
        place = self._place
        self._kept_state = self._state
        self._place = _Place(
            sequence_number,
            offset,
            enqueued_time,
            self._state,
            sequence_number if self.has_state else place.state_sequence_number,
            mark_after_progress(place.delivery_count),
            place.revision + 1,
        )

    # Calls of the handler.

    def begin_call(self) -> None:
        """Note that a call begins: until it ends, the position keeps the state of before."""
        self._is_in_call = True
        self._kept_state = self._state

    def end_call(self, *, keeps_state: bool) -> None:
        """Note that the call ended; unless *keeps_state*, restore the state of the last ``done``.

        Without that, events that are delivered again would be counted into the state twice.
        """
        self._is_in_call = False
        if not keeps_state:
            self._state = self._kept_state
        self._keep_state()

    def _keep_state(self) -> None:
        """Let the current state belong to the position, unless it covers later events too."""
        if not self._is_held and self._place.state is not self._state:
            self._change(state=self._state)

    def _rise(self) -> int:
        """Move the position over the events done above it; return how many it passed."""
        settled_count = self.settle()
        head: list[ReceivedEvent | _Mark] = []
        for event in self._window:
            if event.sequence_number not in self._done:
                break
            head.append(event)
        passed = head[-1].sequence_number if head else -1
        self._is_held = self.has_state and any(
            number > passed and not self._was_completed(number) for number in self._done
        )
        if self._is_held or not head:
            return settled_count
        for _ in head:
            self._done.discard(self._window.popleft().sequence_number)
        self._move(head[-1])
        return settled_count + len(head)

    def _completed(self, handled: int) -> tuple[SequenceRange, ...]:
        """Return the ranges to store above the position *handled*.

        A range may include numbers that no event has. Ranges of a former owner are included until
        their events are admitted.
        """
        if self.has_state:
            return completed_above(self._restored, handled)
        ranges: list[SequenceRange] = []
        window = (event.sequence_number for event in self._window) if self._done else ()
        for is_done, group in groupby(window, self._done.__contains__):
            if is_done:
                numbers = list(group)
                ranges.append(SequenceRange(numbers[0], numbers[-1]))
        ranges += completed_above(self._restored, self._newest)
        return tuple(ranges[: self._ranges_max])

    def _was_completed(self, sequence_number: int) -> bool:
        """Whether a former owner completed the event."""
        index = bisect_right(self._restored, sequence_number, key=lambda found: found.first)
        return index > 0 and sequence_number <= self._restored[index - 1].last

    def _move(self, event: ReceivedEvent | _Mark) -> None:
        self.advance(event.sequence_number, event.offset, event.enqueued_time)

    def _change(self, **fields: Any) -> None:  # noqa: ANN401 - fields of _Place
        self._place = replace(self._place, revision=self._place.revision + 1, **fields)


def _mark(event: ReceivedEvent) -> _Mark:
    return _Mark(event.sequence_number, event.offset, event.enqueued_time)
