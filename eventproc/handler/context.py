"""What a handler's methods receive: the view of its partition."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from eventproc.errors import TransactionsRefusedError
from eventproc.models import ConsumerGroup, ReceivedEvent

T = TypeVar("T")


class PartitionContext(ABC):
    """A handler's view of its partition: position, lag, state, checkpoints and pauses."""

    @property
    @abstractmethod
    def partition_id(self) -> str:
        """The partition's id."""

    @property
    @abstractmethod
    def consumer_group(self) -> ConsumerGroup:
        """The consumer group of this processor."""

    @property
    @abstractmethod
    def owner_id(self) -> str:
        """The processor that owns the partition."""

    @property
    @abstractmethod
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` if none was handled and no checkpoint was found."""

    @property
    @abstractmethod
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""

    @property
    @abstractmethod
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet.

        ``None`` until the hub has reported it, and while it does not answer.
        """

    @property
    @abstractmethod
    def lag_seconds(self) -> float | None:
        """By how much the last handled event is older than the newest in the hub; 0 at the end.

        By the hub's own clock. ``None`` until the hub has reported it and an event was handled.
        """

    @property
    @abstractmethod
    def is_owned(self) -> bool:
        """Whether the lease is trusted now. Check it before an effect that cannot be undone."""

    @property
    def is_ending(self) -> bool:
        """Whether the partition closes after this call; its next owner gets the remaining events.

        Always ``False`` in a Spark sink, which handles its batch to the end.
        """
        return False

    @property
    def is_interrupted(self) -> bool:
        """Whether this call was cancelled. If it returns all the same, its event is not handled."""
        return False

    @property
    def is_replay(self) -> bool:
        """Whether these events are known to be a replay: they may have been handled before.

        A Spark sink knows this of a whole batch. A processor does not track it: there it is
        ``False``, although events are delivered again after a crash or a steal.
        """
        return False

    @property
    @abstractmethod
    def state(self) -> bytes | None:
        """The handler's own state, as of the last handled event; restored on any owner."""

    @state.setter
    @abstractmethod
    def state(self, value: bytes | None) -> None:
        """Replace the state. It is stored in the same write as the position it belongs to.

        Raises:
            TypeError: the value is not bytes.
            StateTooLargeError: it is larger than ``STATE_BYTES_MAX``.
            StateRefusedError: ``key_concurrency`` is above 1, so no state belongs to a position.
        """

    @property
    @abstractmethod
    def state_sequence_number(self) -> int | None:
        """The position that the restored state belongs to.

        It differs from ``sequence_number`` only after a processor of an Azure SDK, which does not
        write state, moved the checkpoint.
        """

    def transaction(self, event: ReceivedEvent | None = None) -> AbstractAsyncContextManager[Any]:
        """Return a block in which a database transaction of the store is open.

        The block gets the connection. At its end the rows that it wrote, the position and the
        state are committed together; after an error, nothing is. The handler's class must have
        ``uses_transactions = True``.

        In ``process_event`` the transaction completes its event; in ``process_events`` all events
        of the call, or every event up to ``event``. ``checkpoint`` and ``done`` are refused inside
        the block.

        Raises:
            OwnershipLostError: another processor owns the partition now; nothing was committed. If
                it is a ``CommitUnknownError``, it is not known whether the commit took effect.
            StoreUnavailableError: the database did not answer; nothing was committed.
            TransactionsRefusedError: there are no transactions here; the message says why.
            ValueError: the event is not one of this call.
        """
        del event
        raise TransactionsRefusedError("this context has no transactions")

    def begin_event(self, event: ReceivedEvent) -> None:  # noqa: B027 - only some need it
        """Note which event of the call is handled now; called before each ``process_event``."""

    @abstractmethod
    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store that every event up to ``event`` is handled, with the state; return when stored.

        Without an event: up to the last event of the previous call, or of this one after it ended.

        With ``key_concurrency`` above 1, ``event`` stands for itself and those before it in the
        same call. The checkpoint contains all events of the partition that are known to be handled.

        Raises:
            ValueError: the event was not given to this partition's handler.
            OwnershipLostError: another processor owns the partition now; nothing was stored.
                A call during which the loss is noticed may be cancelled before this is raised.
        """

    @abstractmethod
    def done(self, event: ReceivedEvent) -> None:
        """Report that every event up to ``event`` is handled, without waiting for a checkpoint.

        If this call fails later, those events are not delivered again, and the state is restored to
        its value at this point. With ``key_concurrency`` above 1: the event, and those before it in
        the same call.
        """

    @abstractmethod
    def pause(self) -> None:
        """Receive nothing more from this partition until ``resume``; it stays owned.

        The call under way continues. A pause ends when the ownership ends.
        """

    @abstractmethod
    def resume(self) -> None:
        """End a pause."""


class BlockingPartitionContext:
    """The context for ordinary functions, which run in a thread; see ``PartitionContext``."""

    def __init__(
        self,
        context: PartitionContext,
        loop: asyncio.AbstractEventLoop,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._context = context
        self._loop = loop
        self._is_cancelled = is_cancelled

    @property
    def partition_id(self) -> str:
        """The partition's id."""
        return self._context.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The consumer group of this processor."""
        return self._context.consumer_group

    @property
    def owner_id(self) -> str:
        """The processor that owns the partition."""
        return self._context.owner_id

    @property
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` if none was handled and no checkpoint was found."""
        return self._context.sequence_number

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers."""
        return self._context.checkpointed_sequence_number

    @property
    def lag(self) -> int | None:
        """Events in the hub that are not handled yet.

        ``None`` until the hub has reported it, and while it does not answer.
        """
        return self._context.lag

    @property
    def lag_seconds(self) -> float | None:
        """By how much the last handled event is older than the newest in the hub."""
        return self._context.lag_seconds

    @property
    def is_owned(self) -> bool:
        """Whether the lease is trusted now. A thread cannot be stopped, so check this."""
        return self._context.is_owned

    @property
    def is_ending(self) -> bool:
        """Whether the partition closes after this call; see ``PartitionContext.is_ending``."""
        return self._context.is_ending

    @property
    def is_replay(self) -> bool:
        """Whether these events are known to be a replay; see ``PartitionContext.is_replay``."""
        return self._context.is_replay

    @property
    def is_cancelled(self) -> bool:
        """Whether this call was cancelled: its events are delivered again, here or elsewhere.

        A call is cancelled when the partition is lost, the lease is not trusted, the call lasts for
        ``failover_timeout``, or the time for a shutdown is over. Return then, or raise anything.
        """
        return self._is_cancelled()

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

    @contextmanager
    def transaction(self, event: ReceivedEvent | None = None) -> Iterator[Any]:
        """Return a block in which a database transaction is open; see ``PartitionContext``.

        The connection is one for ordinary functions, to be used in this thread.

        Raises:
            CancelledError: of ``concurrent.futures``: the call was cancelled, and everything is
                rolled back; the events are delivered again.
        """
        block = self._transaction(event)
        db = self._wait(block.__aenter__())
        try:
            yield db
        except BaseException as error:
            self._wait(block.__aexit__(type(error), error, error.__traceback__))
            raise
        self._wait(block.__aexit__(None, None, None))

    def _transaction(self, event: ReceivedEvent | None) -> AbstractAsyncContextManager[Any]:
        return self._context.transaction(event)

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def begin_event(self, event: ReceivedEvent) -> None:
        """Note which event of the call is handled now; see ``PartitionContext.begin_event``."""
        self._context.begin_event(event)

    def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Store that every event up to ``event`` is handled, with the state; return when stored.

        Raises:
            OwnershipLostError: another processor owns the partition now; nothing was stored.
            CancelledError: of ``concurrent.futures``: the call was cancelled and its state
                undone; the event is delivered again.
        """
        self._wait(self._checkpoint(event))

    async def _checkpoint(self, event: ReceivedEvent | None) -> None:
        await self._context.checkpoint(event)

    def done(self, event: ReceivedEvent) -> None:
        """Report that every event up to ``event`` is handled; see ``PartitionContext.done``."""
        self._context.done(event)

    def pause(self) -> None:
        """Receive nothing more from this partition until ``resume``."""
        self._context.pause()

    def resume(self) -> None:
        """End a pause."""
        self._context.resume()
