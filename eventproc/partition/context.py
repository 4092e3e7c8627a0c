"""The context of one partition: its position and state, for the pump and for the handler."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import get_ident

from eventproc.core.checkpoint_rules import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.core.deliveries import mark_after_progress
from eventproc.errors import OwnershipLostError, StateRefusedError
from eventproc.handler import PartitionContext
from eventproc.models import (
    Checkpoint,
    ConsumerGroup,
    LastEnqueued,
    ReceivedEvent,
    SequenceRange,
    check_state,
)
from eventproc.partition.checkpointer import Checkpointer, Progress
from eventproc.partition.flow_control import PauseSwitch
from eventproc.partition.stop_scope import StopScope


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIdentity:
    """Which partition, of which consumer group, owned by which processor."""

    partition_id: str
    group: ConsumerGroup
    owner_id: str


@dataclass(frozen=True, slots=True)
class Place:
    """A position, and the state of exactly that position.

    Frozen and replaced as a whole, because handler threads read it at any time.
    """

    sequence_number: int | None = None
    offset: str | None = None
    enqueued_time: datetime | None = None
    state: bytes | None = None
    state_sequence_number: int | None = None


class CallContext(PartitionContext):
    """The context that a handler call receives, with the bookkeeping of that call's results."""

    busy_since_s: float | None = None
    """Loop time of the start of the call under way, or of its last ``done``; ``None``: no call."""

    @abstractmethod
    def begin_call(self) -> None:
        """Note that a handler call begins, and remember the state to restore if it fails."""

    @abstractmethod
    def end_call(self, *, keeps_state: bool) -> None:
        """Note that the call ended; unless *keeps_state*, restore the state of the last event."""

    @abstractmethod
    def hold(self) -> None:
        """Until the next ``complete``, store the former state: the current one fits no position."""

    @abstractmethod
    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is still to be handled."""

    @abstractmethod
    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """Note that these events are handled or given up.

        Without key lanes that includes every event below the last of them.
        """


def _as_event(sequence_number: int | None) -> int | None:
    """Return ``None`` for the position before the first event: there is no event -1."""
    return None if sequence_number == BEFORE_FIRST_SEQUENCE_NUMBER else sequence_number


class LiveContext(CallContext):
    """The context of a partition that a pump serves."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        checkpointer: Checkpointer,
        ending: StopScope,
        pause_switch: PauseSwitch,
        last_enqueued: Callable[[], LastEnqueued | None],
        has_state: bool = True,
    ) -> None:
        self._identity = identity
        self._checkpointer = checkpointer
        self._stop_scope = ending
        self._pause_switch = pause_switch
        self._last_enqueued = last_enqueued
        self._has_state = has_state
        self._loop = asyncio.get_running_loop()
        self._thread_id = get_ident()
        self._is_note_due = False
        self._place = Place()
        self._completed: tuple[SequenceRange, ...] = ()
        self._delivery_count = 0
        self._state: bytes | None = None
        self._state_before_call: bytes | None = None
        self._is_in_call = self._is_held = False
        self.newest_handed: int | None = None
        """Sequence number of the newest event that the handler was given."""

    @property
    def partition_id(self) -> str:
        """Which partition this is."""
        return self._identity.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""
        return self._identity.group

    @property
    def owner_id(self) -> str:
        """The processor that owns it."""
        return self._identity.owner_id

    @property
    def sequence_number(self) -> int | None:
        """The last handled event; with key lanes the last one up to which all are handled."""
        return _as_event(self._place.sequence_number)

    @property
    def reached(self) -> int | None:
        """As ``sequence_number``, but -1 where reading begins before the first event."""
        return self._place.sequence_number

    @property
    def offset(self) -> str | None:
        """The last handled event's offset, where one is known."""
        return self._place.offset

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""
        stored = self._checkpointer.stored
        return None if stored is None else _as_event(stored.sequence_number)

    @property
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet."""
        newest, handled = self._last_enqueued(), self._place.sequence_number
        if newest is None or handled is None:
            return None
        if handled == BEFORE_FIRST_SEQUENCE_NUMBER and newest.sequence_number > handled:
            return None  # Retention may have removed any number of events at the beginning.
        return max(0, newest.sequence_number - handled)

    @property
    def lag_seconds(self) -> float | None:
        """By how much the last handled event is older than the newest in the hub."""
        if self.lag == 0:
            return 0.0
        newest, handled_time = self._last_enqueued(), self._place.enqueued_time
        if newest is None or newest.enqueued_time is None or handled_time is None:
            return None
        return max(0.0, (newest.enqueued_time - handled_time).total_seconds())

    @property
    def newest_enqueued(self) -> int | None:
        """The newest event of the partition, as last reported by the source."""
        newest = self._last_enqueued()
        return None if newest is None else newest.sequence_number

    @property
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now."""
        return self._stop_scope.is_trusted

    @property
    def is_ending(self) -> bool:
        """Whether the pump is stopping."""
        return self._stop_scope.reason is not None

    @property
    def state(self) -> bytes | None:
        """The handler's own state."""
        return self._state

    @state.setter
    def state(self, value: bytes | None) -> None:
        if not self._has_state:
            raise StateRefusedError(self.partition_id)
        check_state(self.partition_id, value)
        self._state = value if value is not None else b""

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._place.state_sequence_number

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store progress up to an event, or up to what was handled before this call."""
        if self._stop_scope.is_lost:
            raise OwnershipLostError(self.partition_id)
        if event is not None and self._is_progress(event):
            self._advance(event)
        if self.has_position:
            self._checkpointer.note(self.progress(), 0)
            await self._checkpointer.flush(is_of_call=self._is_in_call)

    def done(self, event: ReceivedEvent) -> None:
        """Note that every event up to this one is handled; may be called from a handler thread."""
        if not self._is_progress(event):
            return
        self._advance(event)
        if self._is_in_call:
            self.busy_since_s = self._loop.time()
        if get_ident() == self._thread_id:
            self._checkpointer.note(self.progress(), 1)
        elif not self._is_note_due:
            self._is_note_due = True
            self._loop.call_soon_threadsafe(self._note_soon)

    def pause(self) -> None:
        """Receive nothing more until ``resume``."""
        self._pause_switch.pause()

    def resume(self) -> None:
        """Receive again."""
        self._pause_switch.resume()

    # For the pump.

    @property
    def completed(self) -> tuple[SequenceRange, ...]:
        """The ranges of events that are handled above the position."""
        return self._completed

    @property
    def has_position(self) -> bool:
        """Whether there is a position to store."""
        return self._place.sequence_number is not None and self._place.offset is not None

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take over position, state and delivery count of a checkpoint."""
        self._place = Place(
            checkpoint.sequence_number,
            checkpoint.offset,
            None,
            checkpoint.state,
            checkpoint.state_sequence_number,
        )
        self._state = self._state_before_call = checkpoint.state
        self._completed = checkpoint.completed
        self._delivery_count = checkpoint.delivery_count

    def pin(self, sequence_number: int, offset: str) -> None:
        """Set the position to begin after, where no checkpoint gives one."""
        self._place = replace(self._place, sequence_number=sequence_number, offset=offset)

    def move(
        self,
        sequence_number: int,
        offset: str,
        enqueued_time: datetime | None,
        completed: tuple[SequenceRange, ...],
    ) -> None:
        """Set the position and the ranges above it, with key lanes: there is no state."""
        self._place = Place(sequence_number, offset, enqueued_time, None, None)
        self._completed = completed
        self._delivery_count = mark_after_progress(self._delivery_count)

    def keep_completed(self, completed: tuple[SequenceRange, ...]) -> None:
        """Set the ranges that are handled above the position, which stays."""
        self._completed = completed

    def count_delivery(self, delivery_count: int) -> None:
        """Set the delivery count of the events after the position; see ``core.deliveries``."""
        self._delivery_count = delivery_count

    @property
    def delivery_count(self) -> int:
        """The delivery count stored with the position; see ``core.deliveries``."""
        return self._delivery_count

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event lies above the position."""
        handled = self._place.sequence_number
        return handled is None or event.sequence_number > handled

    def begin_call(self) -> None:
        """Note that a handler call begins, and remember the state to restore if it fails."""
        if not self._is_held and self._place.state is not self._state:
            self._place = replace(self._place, state=self._state)
        self._is_in_call = True
        self._state_before_call = self._state
        self.busy_since_s = self._loop.time()

    def end_call(self, *, keeps_state: bool) -> None:
        """Note that the call ended; unless *keeps_state*, restore the state of the last event.

        Without that, redelivered events would be counted into the state twice.
        """
        self._is_in_call = False
        self.busy_since_s = None
        if not keeps_state:
            self._state = self._state_before_call

    def note(self) -> None:
        """Have a changed state stored when it is due, although the position is the same."""
        if self.has_position:
            self._checkpointer.note(self.progress(), 1)

    def hold(self) -> None:
        """Store the former state until ``complete``: the current one covers later events too."""
        self._is_held = True

    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """Note that every event up to the last of these is handled or given up."""
        self._is_held = False
        count = 0
        if self.is_unhandled(events[-1]):
            if self.is_unhandled(events[0]):
                count = len(events)
            else:
                count = sum(self.is_unhandled(event) for event in events)
            self._advance(events[-1])
        self._checkpointer.note(self.progress(), count)

    def progress(self) -> Progress:
        """Return the content of the next checkpoint: a position, and the state of that position."""
        place = self._place  # Read once: a handler thread may replace it at any moment.
        assert place.sequence_number is not None, "there is a position"
        assert place.offset is not None, "there is a position"
        return Progress(
            sequence_number=place.sequence_number,
            offset=place.offset,
            state=self._state_to_store(place),
            completed=self._completed,
            delivery_count=self._delivery_count,
        )

    def _is_progress(self, event: ReceivedEvent) -> bool:
        """Whether the position may move to this event, which the handler reported as done."""
        if not self._has_state:
            return False  # With key lanes, events below it may be under way.
        newest = self.newest_handed
        if newest is None or event.sequence_number > newest:
            raise ValueError(
                f"event {event.sequence_number} was not handed to the handler of partition "
                f"{self.partition_id!r}: each partition's events belong to its own context"
            )
        return self.is_unhandled(event) and not self._is_held

    def _state_to_store(self, place: Place) -> bytes | None:
        if not self._has_state:
            return None  # The stored state stays as it is.
        return place.state if self._is_in_call or self._is_held else self._state

    def _advance(self, event: ReceivedEvent) -> None:
        """Move the position to the event; the current state belongs to it."""
        self._state_before_call = self._state
        self._place = Place(
            event.sequence_number,
            event.offset,
            event.enqueued_time,
            self._state,
            event.sequence_number,
        )
        self._delivery_count = mark_after_progress(self._delivery_count)

    def _note_soon(self) -> None:
        self._is_note_due = False
        self._checkpointer.note(self.progress(), 1)
