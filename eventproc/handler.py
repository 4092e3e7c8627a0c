"""What users subclass, and what their code is given.

One handler instance serves one partition, one call at a time. The order of its life is:
``initialize``, any number of ``process_events`` (and ``process_error``), ``close``.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from eventproc.models import CloseReason, ConsumerGroup, ReceivedEvent


class PartitionContext(ABC):
    """What a handler may know of its partition, and ask of it."""

    @property
    @abstractmethod
    def partition_id(self) -> str:
        """Which partition this is."""

    @property
    @abstractmethod
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""

    @property
    @abstractmethod
    def owner_id(self) -> str:
        """The processor that owns it."""

    @property
    @abstractmethod
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` before the first where there was no checkpoint."""

    @property
    @abstractmethod
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""

    @property
    @abstractmethod
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet; ``None`` while the hub did not say."""

    @property
    @abstractmethod
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now. Ask before an effect that cannot be undone."""

    @property
    @abstractmethod
    def state(self) -> bytes | None:
        """The handler's own state, as of the last handled event; restored on any owner."""

    @state.setter
    @abstractmethod
    def state(self, value: bytes | None) -> None:
        """Replace the state. It is stored in the same write as the position it belongs to.

        Raises:
            StateTooLargeError: above ``STATE_BYTES_MAX``.
        """

    @property
    @abstractmethod
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to.

        It differs from ``sequence_number`` only after a processor of another SDK, which knows
        nothing of state, moved the checkpoint.
        """

    @abstractmethod
    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store that everything up to ``event`` is handled; returns when it is stored.

        Without an event: up to the last event of the call before, or of this call once it ended.
        State goes along.

        Raises:
            OwnershipLostError: the partition belongs to somebody else now; nothing was stored.
                A call during which the loss is noticed may be cancelled before it gets this.
        """


class PartitionHandler:
    """Subclass this. One instance serves one partition, one call at a time.

    Only ``process_events`` must be written. Calls run on the event loop of the processor: code
    that blocks belongs into a ``BlockingPartitionHandler``.
    """

    async def initialize(self, context: PartitionContext) -> None:
        """Called once, before the first event. What it raises is retried."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order. It may come again after a crash or a theft.

        What it raises goes to ``process_error``; then the same events come again, after a wait
        that grows. Events up to one that was given to ``context.checkpoint`` do not come again.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_events")

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Called with what ``initialize`` or ``process_events`` raised, before the next try."""

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Called once, at the end. ``context.checkpoint`` works unless ownership was lost."""


class BlockingPartitionContext:
    """The same knowledge for ordinary functions, which run in a thread of their own."""

    def __init__(self, context: PartitionContext, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop

    @property
    def partition_id(self) -> str:
        """Which partition this is."""
        return self._context.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""
        return self._context.consumer_group

    @property
    def owner_id(self) -> str:
        """The processor that owns it."""
        return self._context.owner_id

    @property
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` before the first where there was no checkpoint."""
        return self._context.sequence_number

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""
        return self._context.checkpointed_sequence_number

    @property
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet; ``None`` while the hub did not say."""
        return self._context.lag

    @property
    def is_owned(self) -> bool:
        """Whether the lease may be trusted now. A thread cannot be stopped: look at this."""
        return self._context.is_owned

    @property
    def state(self) -> bytes | None:
        """The handler's own state; see ``PartitionContext.state``."""
        return self._context.state

    @state.setter
    def state(self, value: bytes | None) -> None:
        self._context.state = value

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to."""
        return self._context.state_sequence_number

    def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store that everything up to ``event`` is handled; returns when it is stored.

        Raises:
            OwnershipLostError: the partition belongs to somebody else now; nothing was stored.
        """
        asyncio.run_coroutine_threadsafe(self._context.checkpoint(event), self._loop).result()


class BlockingPartitionHandler:
    """Subclass this to handle events with ordinary functions.

    Each partition has a thread of its own, so a call that blocks delays only its own partition.
    A thread cannot be stopped from outside: a long call should look at ``context.is_owned``.
    """

    def initialize(self, context: BlockingPartitionContext) -> None:
        """Called once, before the first event. What it raises is retried."""

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order; see ``PartitionHandler.process_events``."""
        raise NotImplementedError(f"{type(self).__name__} must define process_events")

    def process_error(self, context: BlockingPartitionContext, error: Exception) -> None:
        """Called with what ``initialize`` or ``process_events`` raised, before the next try."""

    def close(self, context: BlockingPartitionContext, reason: CloseReason) -> None:
        """Called once, at the end."""


HandlerFactory = Callable[[], PartitionHandler | BlockingPartitionHandler]
"""What makes a handler for a partition: usually the handler class itself."""
