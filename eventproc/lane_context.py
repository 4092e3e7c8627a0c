"""What a handler sees of its partition from within one lane."""

import asyncio
from collections.abc import Callable, Sequence
from threading import get_ident

from eventproc.context import CallContext, LiveContext
from eventproc.errors import StateRefusedError
from eventproc.models import ConsumerGroup, ReceivedEvent

Complete = Callable[[Sequence[ReceivedEvent]], None]


class LaneContext(CallContext):
    """The partition's context, but for what concerns the events of this lane's call."""

    def __init__(
        self,
        whole: LiveContext,
        *,
        complete: Complete,
        is_unfinished: Callable[[ReceivedEvent], bool],
    ) -> None:
        self._whole = whole
        self._complete = complete
        self._is_unfinished = is_unfinished
        self._loop = asyncio.get_running_loop()
        self._thread_id = get_ident()
        self.run: Sequence[ReceivedEvent] = ()
        """The events of one key that this lane is busy with."""

    @property
    def partition_id(self) -> str:
        """Which partition this is."""
        return self._whole.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""
        return self._whole.consumer_group

    @property
    def owner_id(self) -> str:
        """The processor that owns it."""
        return self._whole.owner_id

    @property
    def sequence_number(self) -> int | None:
        """The last event below which all is handled."""
        return self._whole.sequence_number

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The position of the stored checkpoint."""
        return self._whole.checkpointed_sequence_number

    @property
    def lag(self) -> int | None:
        """Events in the hub above the position."""
        return self._whole.lag

    @property
    def lag_seconds(self) -> float | None:
        """By how much the event at the position is older than the newest in the hub."""
        return self._whole.lag_seconds

    @property
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now."""
        return self._whole.is_owned

    @property
    def state(self) -> bytes | None:
        """The state that was restored, if the partition was served without lanes before."""
        return self._whole.state

    @state.setter
    def state(self, value: bytes | None) -> None:  # noqa: ARG002 - whatever it is
        raise StateRefusedError(self.partition_id)

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._whole.state_sequence_number

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store all that is handled, with the event and those before it in this call."""
        if event is not None:
            self._complete(self._up_to(event))
        await self._whole.checkpoint()

    def done(self, event: ReceivedEvent) -> None:
        """The event is handled, and so are those before it in this call."""
        events = self._up_to(event)
        if self.busy_since_s is not None:
            self.busy_since_s = self._loop.time()
        if get_ident() == self._thread_id:
            self._complete(events)
        else:  # Told before the end of the call is, which takes the same way.
            self._loop.call_soon_threadsafe(self._complete, events)

    def pause(self) -> None:
        """Receive nothing more until ``resume``."""
        self._whole.pause()

    def resume(self) -> None:
        """Receive again."""
        self._whole.resume()

    def _up_to(self, event: ReceivedEvent) -> Sequence[ReceivedEvent]:
        number = event.sequence_number
        if all(e.sequence_number != number for e in self.run):
            return ()  # Of a call that is over: what lies below it here is of another key.
        return [e for e in self.run if e.sequence_number <= number]

    # For the delivery.

    def begin_call(self) -> None:
        """Nothing to remember but when: there is no state."""
        self.busy_since_s = self._loop.time()

    def end_call(self, *, keeps_state: bool) -> None:  # noqa: ARG002 - there is no state
        """Nothing to take back."""
        self.busy_since_s = None

    def hold(self) -> None:
        """Nothing to wait for."""

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is still to be handled."""
        return self._is_unfinished(event)

    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """These events are handled, or given up."""
        self._complete(events)
