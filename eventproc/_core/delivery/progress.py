"""How far one partition is handled: what a checkpoint stores. For one lane, and for several.

Rule 1: the position is the last event up to which every event is done.
Rule 2: a state belongs to exactly one position. So while there is a state, the position stays
while an event above it is done and an earlier one is not: the state covers the later event already.
Rule 3: without a state (several key lanes, or a handler that has set none), events done above the
position are stored as ranges, the lowest ``COMPLETED_RANGES_MAX``. Events of ranges that do not fit
are handled again after a restart, never skipped.
Rule 4: events that a former owner completed are not handled again, with a state or without.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from eventproc._core.delivery.checkpoints import completed_above
from eventproc._core.delivery.failure import isolation_after_progress
from eventproc._core.delivery.window import NUMBER_OF, Placed, Window, above, frozen, without_body
from eventproc.models import (
    COMPLETED_RANGES_MAX,
    NOT_BEGUN,
    Checkpoint,
    Isolation,
    ReceivedEvent,
    SequenceRange,
)


class _Place(NamedTuple):
    """A position, and what belongs to exactly that position.

    Replaced as a whole, because handler threads read and replace it at any time. With key lanes
    that is done for each event, and a tuple takes a fraction of the time of a dataclass.
    """

    sequence_number: int | None = None
    offset: str | None = None
    enqueued_time: datetime | None = None
    state: bytes | None = None
    state_sequence_number: int | None = None
    isolation: Isolation = NOT_BEGUN
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSnapshot:
    """What the next checkpoint stores of the progress, as of one moment."""

    sequence_number: int
    offset: str
    state: bytes | None
    """``None`` leaves the stored state alone."""

    completed: tuple[SequenceRange, ...]
    """Ranges done above ``sequence_number``: sorted, disjoint, ``COMPLETED_RANGES_MAX`` at most.
    """

    isolation: Isolation
    """The isolation stored with the position; see ``failure.py``."""

    revision: int
    """The ``revision`` of the progress at that moment."""


class PartitionProgress:
    """Which events of one partition are done, with the handler's state and the isolation.

    ``done_through``, ``state`` and the properties may be used by a handler's thread; everything
    else only by the event loop of the pump.
    """

    def __init__(self, *, has_state: bool = True, ranges_max: int = COMPLETED_RANGES_MAX) -> None:
        """Begin without a position; *has_state* is false if several events are handled at once."""
        self.has_state = has_state
        self._ranges_max = ranges_max
        self._place = _Place()
        self._restored: tuple[SequenceRange, ...] = ()
        """The ranges above the restored position that a former owner completed."""

        self._newest = -1
        """The highest sequence number that was admitted; at first, that of the position."""

        self._window = Window()
        self._state: bytes | None = None
        self._kept_state: bytes | None = None
        """The handler's state now, and the one to return to if the call under way fails."""

        self._is_in_call = False
        self._is_held = False
        """Whether the state covers an event above one that is not done."""

        self._done_above: tuple[SequenceRange, ...] = ()
        """In one lane without a state: the ranges done above an event that is not done."""

        self._done_above_count = 0
        """How many events of the window these ranges cover."""

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
    def isolation(self) -> Isolation:
        """The isolation of the events after the position; see ``failure.py``."""
        return self._place.isolation

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
        return self._window.unfinished_count

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
            isolation=place.isolation,
            revision=place.revision,
        )

    def after(self, events: Sequence[ReceivedEvent]) -> ProgressSnapshot | None:
        """Return what to store if these events, of the call under way, are done; change nothing.

        Its ``revision`` is that of now. ``None`` if that would not show that they are done: there
        is no position, or an event before them is not done and the state forbids ranges.
        """
        later = copy(self)
        later._window = self._window.copied()  # noqa: SLF001 - of this class
        later.done_in_call(events)
        snapshot = later.snapshot()
        if snapshot is None or any(map(later.is_unstored, events)):
            return None
        return replace(snapshot, revision=self.revision)

    def is_unstored(self, event: ReceivedEvent) -> bool:
        """Whether the next snapshot would not show that the event is done."""
        number = event.sequence_number
        if not self._is_above(number):
            return False
        return self.has_state or not self._window.has_done(number)

    # Where it begins.

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a stored checkpoint. ``revision`` stays: there is nothing new to store."""
        self._place = _Place(
            checkpoint.sequence_number,
            checkpoint.offset,
            None,
            checkpoint.state,
            checkpoint.state_sequence_number,
            checkpoint.isolation,
            self._place.revision,
        )
        self._state = checkpoint.state
        self._restored = checkpoint.completed
        self._newest = -1 if checkpoint.sequence_number is None else checkpoint.sequence_number

    def pin(self, sequence_number: int, offset: str) -> None:
        """Set the position to begin after, where no checkpoint gives one."""
        self._change(sequence_number=sequence_number, offset=offset)
        self._newest = sequence_number

    def touch(self) -> None:
        """Have the next ``snapshot`` stored, even if it is the same as the last one."""
        self._change()

    def set_isolation(self, isolation: Isolation) -> None:
        """Set the isolation of the events after the position; see ``failure.py``."""
        if isolation != self._place.isolation:
            self._change(isolation=isolation)

    # Events.

    def admit(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        """Note that these events were received, in order; return those that are to be handled.

        This leaves out events that were admitted before, and those that a former owner completed.
        The position moves over the completed ones.
        """
        events = frozen(events)
        if events[0].sequence_number <= self._newest:
            events = above(events, self._newest)
            if not events:
                return ()
        self._newest = events[-1].sequence_number
        # Without bodies: those of done events would fill the memory while one key is slow.
        self._window.add(events if self.has_state else tuple(map(without_body, events)))
        if not self._restored or events[0].sequence_number > self._restored[-1].last:
            return events
        for found in self._restored:
            begin = bisect_left(events, found.first, key=NUMBER_OF)
            end = bisect_right(events, found.last, begin, key=NUMBER_OF)
            self._window.mark_done(events[begin:end], before=True)
        left = self._window.not_done(events)
        isolation = self.isolation
        self._move_over_done()
        self.set_isolation(isolation)  # The next event is as suspect as before.
        return left

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is still to be handled."""
        number = event.sequence_number
        return self._is_above(number) and not self._window.has_done(number)

    def unhandled(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        """Return those of these events, in order, that are still to be handled.

        Of one batch that is handled up to some event, this is a slice.
        """
        handled = self._place.sequence_number
        if events and handled is not None:
            if events[-1].sequence_number <= handled:
                return ()
            if events[0].sequence_number <= handled:
                events = above(events, handled)
        return self._window.not_done(events)

    def done(self, *parts: Sequence[ReceivedEvent]) -> int:
        """Note that these admitted events are done, and that the state includes all of them.

        Returns the number of events that the next snapshot covers and none before it did. With a
        state these are the events that the position passed, and without one the events of *parts*:
        snapshots have covered as ranges those that the position passes after them.
        """
        passed_count = self._pass_first(parts[0]) if len(parts) == 1 else 0
        if passed_count:
            return passed_count if self.has_state else len(parts[0])
        earlier_count = self.count_passed()
        new_count = sum(map(self._window.mark_done, parts))
        if new_count:
            self._kept_state = self._state
        passed_count = earlier_count + self._move_over_done()
        if self.has_state:
            return passed_count
        if new_count and not passed_count:
            self._change()  # Only the ranges above the position.
        return new_count

    def done_in_call(self, events: Sequence[ReceivedEvent]) -> int:
        """Note that these events of the call under way are done, and that its state is to stay.

        Returns what ``done`` returns.
        """
        count = self.done(events) if events else 0
        self._kept_state = self._state
        self._keep_state()
        return count

    def done_through(self, event: ReceivedEvent) -> bool:
        """Note that every event up to this one is done; return whether that moved the position.

        Only with a state: without, events below it may be under way. Handler threads may call this;
        the event loop then calls ``count_passed``.

        Raises:
            ValueError: the event was not admitted.
        """
        if event.sequence_number > self._newest:
            raise ValueError(f"event {event.sequence_number} was not admitted")
        number = event.sequence_number
        handled = self._place.sequence_number
        if self._is_held or self._done_above or not self.has_state:
            return False
        if handled is not None and number <= handled:
            return False
        if self._restored and self._was_completed(number):
            return False
        self._move(event)
        return True

    def count_passed(self) -> int:
        """Return how many events ``done_through`` passed since the last call."""
        handled = self._place.sequence_number
        return 0 if handled is None else self._window.drop_through(handled)

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
            isolation_after_progress(place.isolation),
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

    def _move_over_done(self) -> int:
        """Move the position over the events done above it; return how many more are covered."""
        earlier_count = self.count_passed()
        has_gap = self.has_state and self._window.is_held
        self._is_held = has_gap and bool(self._state or self._place.state)
        if self._is_held:
            return earlier_count
        before = len(self._window)
        last = self._window.drop_done()
        if last is not None:
            self._move(last)
        return earlier_count + before - len(self._window) + self._note_done_above(has_gap=has_gap)

    def _note_done_above(self, *, has_gap: bool) -> int:
        """Note what one lane without a state has done above a gap; return how many events more."""
        ranges = self._done_ranges() if has_gap else ()
        if ranges != self._done_above:
            self._done_above = ranges
            self._change()
        former_count = self._done_above_count
        self._done_above_count = self._window.done_count if has_gap else 0
        return self._done_above_count - former_count

    def _pass_first(self, events: Sequence[ReceivedEvent]) -> int:
        """Move the position over events that are the first ones of the window, if they are.

        Every batch that does not fail takes this path, so it does not look at each event. Returns
        how many events the position moved over.
        """
        if not events or self._is_held:
            return 0
        last = events[-1]
        if not self._is_above(last.sequence_number) or not self._window.drop_first(events):
            return 0
        self.advance(last.sequence_number, last.offset, last.enqueued_time)
        return len(events) + (self._move_over_done() if self._window.done_count else 0)

    def _completed(self, handled: int) -> tuple[SequenceRange, ...]:
        """Return the ranges to store above the position *handled*.

        A range may include numbers that no event has. Ranges of a former owner are included until
        their events are admitted.
        """
        if self.has_state:
            return self._done_above or completed_above(self._restored, handled)
        return self._done_ranges()

    def _done_ranges(self) -> tuple[SequenceRange, ...]:
        above_window = completed_above(self._restored, self._newest)
        return tuple(chain(self._window.done_ranges(), above_window))[: self._ranges_max]

    def _is_above(self, sequence_number: int) -> bool:
        handled = self._place.sequence_number
        return handled is None or sequence_number > handled

    def _was_completed(self, sequence_number: int) -> bool:
        """Whether a former owner completed the event."""
        index = bisect_right(self._restored, sequence_number, key=lambda found: found.first)
        return index > 0 and sequence_number <= self._restored[index - 1].last

    def _move(self, event: Placed) -> None:
        self.advance(event.sequence_number, event.offset, event.enqueued_time)

    def _change(self, **fields: Any) -> None:  # noqa: ANN401 - fields of _Place
        self._place = self._place._replace(revision=self._place.revision + 1, **fields)
