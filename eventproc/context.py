"""What a pump knows of its partition's progress, and shows to the handler."""

from collections.abc import Callable
from dataclasses import dataclass

from eventproc.checkpointer import Checkpointer, Progress
from eventproc.ending import Ending
from eventproc.errors import OwnershipLostError, StateTooLargeError
from eventproc.handler import PartitionContext
from eventproc.models import (
    STATE_BYTES_MAX,
    Checkpoint,
    ConsumerGroup,
    LastEnqueued,
    ReceivedEvent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIdentity:
    """Which partition, of which group, in whose hands."""

    partition_id: str
    group: ConsumerGroup
    owner_id: str


class LiveContext(PartitionContext):
    """The context of a partition that a pump serves."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        checkpointer: Checkpointer,
        ending: Ending,
        last_enqueued: Callable[[], LastEnqueued | None],
    ) -> None:
        self._identity = identity
        self._checkpointer = checkpointer
        self._ending = ending
        self._last_enqueued = last_enqueued
        self._sequence_number: int | None = None
        self._offset: str | None = None
        self._state: bytes | None = None
        self._state_before_call: bytes | None = None
        self._is_in_call = False
        self._state_sequence_number: int | None = None

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
        """The last handled event."""
        return self._sequence_number

    @property
    def offset(self) -> str | None:
        """The last handled event's offset, where one is known."""
        return self._offset

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""
        stored = self._checkpointer.stored
        return None if stored is None else stored.sequence_number

    @property
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet."""
        newest = self._last_enqueued()
        if newest is None or self._sequence_number is None:
            return None
        return max(0, newest.sequence_number - self._sequence_number)

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
        if value is not None and len(value) > STATE_BYTES_MAX:
            raise StateTooLargeError(
                f"state of partition {self.partition_id!r} has {len(value)} bytes, the limit is "
                f"{STATE_BYTES_MAX}: keep less, or keep it elsewhere"
            )
        self._state = value if value is not None else b""

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._state_sequence_number

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store progress up to an event, or up to what was handled before this call."""
        if self._ending.is_lost:
            raise OwnershipLostError(self.partition_id)
        if event is not None and self.is_unhandled(event):
            self.advance(event)
        if self._sequence_number is not None and self._offset is not None:
            self._checkpointer.note(self.progress(), 0)
            await self._checkpointer.flush()

    # For the pump.

    def restore(self, checkpoint: Checkpoint) -> None:
        """Begin where a checkpoint says, with its state."""
        self._sequence_number = checkpoint.sequence_number
        self._offset = checkpoint.offset
        self._state = self._state_before_call = checkpoint.state
        self._state_sequence_number = checkpoint.state_sequence_number

    def pin(self, sequence_number: int, offset: str) -> None:
        """Begin after an event that this group never handles."""
        self._sequence_number = sequence_number
        self._offset = offset

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event lies above what was handled."""
        return self._sequence_number is None or event.sequence_number > self._sequence_number

    def begin_call(self) -> None:
        """A call of the handler begins, which may come again if it does not succeed."""
        self._is_in_call = True
        self._state_before_call = self._state

    def end_call(self, *, is_done: bool) -> None:
        """The call is over; what one that failed did to the state since the last event is undone.

        Otherwise the same events, coming again, would be counted into the state twice.
        """
        self._is_in_call = False
        if not is_done:
            self._state = self._state_before_call

    def advance(self, event: ReceivedEvent) -> None:
        """Everything up to the event is handled, and the state includes it."""
        self._sequence_number = event.sequence_number
        self._offset = event.offset
        self._state_before_call = self._state
        self._state_sequence_number = event.sequence_number

    def progress(self) -> Progress:
        """What a checkpoint should say now: a position and the state of exactly that position."""
        assert self._sequence_number is not None, "something was handled"
        assert self._offset is not None, "something was handled"
        return Progress(
            sequence_number=self._sequence_number,
            offset=self._offset,
            state=self._state_before_call if self._is_in_call else self._state,
        )
