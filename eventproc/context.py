"""What a pump knows of its partition's progress, and shows to the handler."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import get_ident

from eventproc.checkpointer import Checkpointer, Progress
from eventproc.core.progress import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.ending import Ending
from eventproc.errors import OwnershipLostError, StateRefusedError, StateTooLargeError
from eventproc.gate import Gate
from eventproc.handler import PartitionContext
from eventproc.models import (
    STATE_BYTES_MAX,
    Checkpoint,
    ConsumerGroup,
    LastEnqueued,
    ReceivedEvent,
    SequenceRange,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIdentity:
    """Which partition, of which group, in whose hands."""

    partition_id: str
    group: ConsumerGroup
    owner_id: str


@dataclass(frozen=True, slots=True)
class Place:
    """A position, and the state of exactly that position. Replaced as a whole: threads look."""

    sequence_number: int | None = None
    offset: str | None = None
    enqueued_time: datetime | None = None
    state: bytes | None = None
    state_sequence_number: int | None = None


class CallContext(PartitionContext):
    """What calls of the handler are made with, and what keeps account of what they did."""

    busy_since_s: float | None = None
    """Since when a call is under way, or since it last said that something is done."""

    @abstractmethod
    def begin_call(self) -> None:
        """A call of the handler begins, which may come again if it does not succeed."""

    @abstractmethod
    def end_call(self, *, keeps_state: bool) -> None:
        """The call is over; unless it *keeps_state*, take back what it did since the last event."""

    @abstractmethod
    def hold(self) -> None:
        """Until the next ``complete`` the state is that of no position."""

    @abstractmethod
    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is still to be handled."""

    @abstractmethod
    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """These events are handled, or given up; without key lanes, and all below the last."""


def _as_event(sequence_number: int | None) -> int | None:
    """Users ask which event it was; before the first there is none."""
    return None if sequence_number == BEFORE_FIRST_SEQUENCE_NUMBER else sequence_number


class LiveContext(CallContext):
    """The context of a partition that a pump serves."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        checkpointer: Checkpointer,
        ending: Ending,
        gate: Gate,
        last_enqueued: Callable[[], LastEnqueued | None],
        has_state: bool = True,
    ) -> None:
        self._identity = identity
        self._checkpointer = checkpointer
        self._ending = ending
        self._gate = gate
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
        """Up to where events were given to the handler."""

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
        """The last handled event; with key lanes the last one below which all is handled."""
        return _as_event(self._place.sequence_number)

    @property
    def reached(self) -> int | None:
        """The same, but -1 where reading begins before the first event of all."""
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
            return None  # Of those before the first that comes, retention may have taken any.
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
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now."""
        return self._ending.is_trusted

    @property
    def state(self) -> bytes | None:
        """The handler's own state."""
        return self._state

    @state.setter
    def state(self, value: bytes | None) -> None:
        if not self._has_state:
            raise StateRefusedError(self.partition_id)
        if value is not None and not isinstance(value, bytes):
            raise TypeError(
                f"state of partition {self.partition_id!r} is a {type(value).__name__}: give "
                "bytes, or keep a value of a type with eventproc.state.TypedState"
            )
        if value is not None and len(value) > STATE_BYTES_MAX:
            raise StateTooLargeError(
                f"state of partition {self.partition_id!r} has {len(value)} bytes, the limit is "
                f"{STATE_BYTES_MAX}: keep less, or keep it elsewhere"
            )
        self._state = value if value is not None else b""

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._place.state_sequence_number

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store progress up to an event, or up to what was handled before this call."""
        if self._ending.is_lost:
            raise OwnershipLostError(self.partition_id)
        if event is not None and self._is_progress(event):
            self._advance(event)
        if self.is_anywhere:
            self._checkpointer.note(self.progress(), 0)
            await self._checkpointer.flush()

    def done(self, event: ReceivedEvent) -> None:
        """Everything up to the event is handled; may be called from the handler's own thread."""
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
        self._gate.pause()

    def resume(self) -> None:
        """Receive again."""
        self._gate.resume()

    # For the pump.

    @property
    def completed(self) -> tuple[SequenceRange, ...]:
        """What is handled above the position."""
        return self._completed

    @property
    def is_anywhere(self) -> bool:
        """Whether there is a position to store."""
        return self._place.sequence_number is not None and self._place.offset is not None

    def restore(self, checkpoint: Checkpoint) -> None:
        """Begin where a checkpoint says, with its state."""
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
        """Begin after an event that this group never handles."""
        self._place = replace(self._place, sequence_number=sequence_number, offset=offset)

    def move(
        self,
        sequence_number: int,
        offset: str,
        enqueued_time: datetime | None,
        completed: tuple[SequenceRange, ...],
    ) -> None:
        """Go on to where everything is handled, and what is handled above; there is no state."""
        self._place = Place(sequence_number, offset, enqueued_time, None, None)
        self._completed = completed
        self._delivery_count = 0

    def keep_completed(self, completed: tuple[SequenceRange, ...]) -> None:
        """Stay at the position; this is handled above it."""
        self._completed = completed

    def count_delivery(self, delivery_count: int) -> None:
        """What follows the position is about to be handed over for the so manieth time."""
        self._delivery_count = delivery_count

    @property
    def delivery_count(self) -> int:
        """How often what follows the position was handed over and not heard of again."""
        return self._delivery_count

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event lies above what was handled."""
        handled = self._place.sequence_number
        return handled is None or event.sequence_number > handled

    def begin_call(self) -> None:
        """A call of the handler begins, which may come again if it does not succeed."""
        if not self._is_held and self._place.state is not self._state:
            self._place = replace(self._place, state=self._state)
        self._is_in_call = True
        self._state_before_call = self._state
        self.busy_since_s = self._loop.time()

    def end_call(self, *, keeps_state: bool) -> None:
        """The call is over; what one that failed did to the state since the last event is undone.

        Otherwise the same events, coming again, would be counted into the state twice.
        """
        self._is_in_call = False
        self.busy_since_s = None
        if not keeps_state:
            self._state = self._state_before_call

    def note(self) -> None:
        """Have the state stored in time, though the position is where it was."""
        if self.is_anywhere:
            self._checkpointer.note(self.progress(), 1)

    def hold(self) -> None:
        """Events above the position are in the state, so it waits for the next ``complete``."""
        self._is_held = True

    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """All up to the last of these is handled, or given up."""
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
        """What a checkpoint should say now: a position and the state of exactly that position."""
        place = self._place  # Looked at once: a handler's thread may replace it at any moment.
        assert place.sequence_number is not None, "something was handled"
        assert place.offset is not None, "something was handled"
        return Progress(
            sequence_number=place.sequence_number,
            offset=place.offset,
            state=self._state_to_store(place),
            completed=self._completed,
            delivery_count=self._delivery_count,
        )

    def _is_progress(self, event: ReceivedEvent) -> bool:
        """Whether the position may go on to this event, because the handler says so."""
        if not self._has_state:
            return False  # With key lanes what lies below it may be under way.
        newest = self.newest_handed
        if newest is None or event.sequence_number > newest:
            raise ValueError(
                f"event {event.sequence_number} was not handed to the handler of partition "
                f"{self.partition_id!r}: each partition's events belong to its own context"
            )
        return self.is_unhandled(event) and not self._is_held

    def _state_to_store(self, place: Place) -> bytes | None:
        if not self._has_state:
            return None  # What is stored stays as it is.
        return place.state if self._is_in_call or self._is_held else self._state

    def _advance(self, event: ReceivedEvent) -> None:
        """Everything up to the event is handled, and the state includes it."""
        self._state_before_call = self._state
        self._place = Place(
            event.sequence_number,
            event.offset,
            event.enqueued_time,
            self._state,
            event.sequence_number,
        )
        self._delivery_count = 0

    def _note_soon(self) -> None:
        self._is_note_due = False
        self._checkpointer.note(self.progress(), 1)
