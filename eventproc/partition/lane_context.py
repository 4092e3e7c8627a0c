"""The context of the handler calls of one key lane."""

import asyncio
from collections.abc import Callable, Sequence
from threading import get_ident

from eventproc.errors import StateRefusedError
from eventproc.models import ConsumerGroup, ReceivedEvent
from eventproc.partition.context import CallContext, LiveContext

Complete = Callable[[Sequence[ReceivedEvent]], None]


class LaneContext(CallContext):
    """The partition's context, except that ``done`` and ``checkpoint`` concern this lane's call."""

    def __init__(
        self,
        partition_context: LiveContext,
        *,
        complete: Complete,
        is_unfinished: Callable[[ReceivedEvent], bool],
    ) -> None:
        self._partition_context = partition_context
        self._complete = complete
        self._is_unfinished = is_unfinished
        self._loop = asyncio.get_running_loop()
        self._thread_id = get_ident()
        self.run: Sequence[ReceivedEvent] = ()
        """The events of one key that this lane is handling."""

    @property
    def partition_id(self) -> str:
        """Which partition this is."""
        return self._partition_context.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""
        return self._partition_context.consumer_group

    @property
    def owner_id(self) -> str:
        """The processor that owns it."""
        return self._partition_context.owner_id

    @property
    def sequence_number(self) -> int | None:
        """The last event up to which all are handled."""
        return self._partition_context.sequence_number

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The position of the stored checkpoint."""
        return self._partition_context.checkpointed_sequence_number

    @property
    def lag(self) -> int | None:
        """Events in the hub above the position."""
        return self._partition_context.lag

    @property
    def lag_seconds(self) -> float | None:
        """By how much the event at the position is older than the newest in the hub."""
        return self._partition_context.lag_seconds

    @property
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now."""
        return self._partition_context.is_owned

    @property
    def is_ending(self) -> bool:
        """Whether the pump is stopping."""
        return self._partition_context.is_ending

    @property
    def state(self) -> bytes | None:
        """The state that was restored, if the partition was served without lanes before."""
        return self._partition_context.state

    @state.setter
    def state(self, value: bytes | None) -> None:  # noqa: ARG002 - any value is refused
        raise StateRefusedError(self.partition_id)

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._partition_context.state_sequence_number

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store all handled events, including *event* and those before it in this call."""
        if event is not None:
            self._complete(self._up_to(event))
        await self._partition_context.checkpoint()

    def done(self, event: ReceivedEvent) -> None:
        """Note that the event, and those before it in this call, are handled."""
        events = self._up_to(event)
        if self.busy_since_s is not None:
            self.busy_since_s = self._loop.time()
        if get_ident() == self._thread_id:
            self._complete(events)
        else:  # Runs before the end of the call is seen, which is scheduled in the same way.
            self._loop.call_soon_threadsafe(self._complete, events)

    def pause(self) -> None:
        """Receive nothing more until ``resume``."""
        self._partition_context.pause()

    def resume(self) -> None:
        """Receive again."""
        self._partition_context.resume()

    def _up_to(self, event: ReceivedEvent) -> Sequence[ReceivedEvent]:
        number = event.sequence_number
        if all(e.sequence_number != number for e in self.run):
            return ()  # It is of an earlier call: the events below it in this one have another key.
        return [e for e in self.run if e.sequence_number <= number]

    # For the delivery.

    def begin_call(self) -> None:
        """Note the time; with key lanes there is no state to remember."""
        self.busy_since_s = self._loop.time()

    def end_call(self, *, keeps_state: bool) -> None:  # noqa: ARG002 - there is no state
        """Note that the call ended; there is no state to restore."""
        self.busy_since_s = None

    def hold(self) -> None:
        """Do nothing: there is no state."""

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is still to be handled."""
        return self._is_unfinished(event)

    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """Note that these events are handled or given up."""
        self._complete(events)
