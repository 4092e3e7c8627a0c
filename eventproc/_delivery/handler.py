"""The handler classes that users subclass, and the view of a partition that their methods get.

One handler serves one partition, with one call at a time if ``key_concurrency`` is 1. The order of
calls: ``initialize``; any number of ``process_events``, ``process_error``, ``on_idle``; ``close``.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from operator import index
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeAlias, TypeVar

from eventproc._base.logs import error_text
from eventproc._base.settings import Wanted
from eventproc._base.tasks import CallEndedEarlyError, LoopTurns
from eventproc.decoders import Decoder
from eventproc.errors import (
    DecodeError,
    EventProcError,
    OwnershipLostError,
    TransactionsRefusedError,
)
from eventproc.models import CloseReason, ConsumerGroup, ReceivedEvent

if TYPE_CHECKING:
    import pyarrow as pa
    import typing_extensions

    T = typing_extensions.TypeVar("T", default=Any)  # A handler without values needs no type.
else:
    T = TypeVar("T")

Result = TypeVar("Result")

COLUMNS_WANTED: Final = ("body", "partition", "offset", "sequenceNumber", "enqueuedTime")
"""The columns that ``process_columns`` gets if the handler names no others."""


class PartitionContext(ABC):
    """A handler's view of its partition: position, lag, state, checkpoints and pauses."""

    __module__ = "eventproc"

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

    __module__ = "eventproc"

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

    def _wait(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
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


class BatchError(EventProcError):
    """Raise it from ``process_events`` to name the events that failed; all others count as handled.

    Only the failed events are delivered again, one at a time, before any newer event.
    """

    __module__ = "eventproc"

    def __init__(
        self,
        failed: Sequence[tuple[ReceivedEvent, Exception]],
        *,
        untried: Sequence[ReceivedEvent] = (),
    ) -> None:
        """Name events of this call.

        Args:
            failed: Events that failed, each with its error.
            untried: Events that were not handled because of that.
        """
        if not failed:
            raise ValueError("no event failed: return instead of raising BatchError")
        event, error = failed[0]
        super().__init__(
            f"{len(failed)} of the events failed, first {event.sequence_number}: "
            f"{error_text(error)}"
        )
        self.failed = tuple(failed)
        self.untried = tuple(untried)

    @property
    def shown(self) -> Exception:
        """The error to report: that of the only failed event, otherwise this one."""
        return self.failed[0][1] if len(self.failed) == 1 else self


class RowError(EventProcError):
    """Raise it from ``process_columns`` to name the rows that failed; all others are handled.

    Only the failed rows are delivered again, one at a time, before any newer event.
    """

    __module__ = "eventproc"

    def __init__(self, *rows: int, error: Exception | None = None) -> None:
        """Name rows of this call.

        Args:
            rows: Their indexes in the batch, from 0.
            error: Why they failed; by default the exception that this one is raised ``from``.
        """
        self.rows = tuple(sorted({index(row) for row in rows}))
        """The indexes, in order, each once."""

        if not self.rows:
            raise ValueError("no row failed: return instead of raising RowError")
        if self.rows[0] < 0:
            raise ValueError(f"there is no row {self.rows[0]}: count from 0, the first row")
        message = f"{len(self.rows)} of the rows failed, first row {self.rows[0]}"
        super().__init__(message if error is None else f"{message}: {error_text(error)}")
        self.error = error

    @property
    def shown(self) -> Exception:
        """The error to report: the one of the rows if it is known, otherwise this one."""
        cause = self.__cause__
        return self.error or (cause if isinstance(cause, Exception) else self)


class PartitionHandler(Generic[T]):
    """Subclass this to handle events with coroutines. One instance serves one partition.

    Define ``process_event``; or ``process_value`` to get decoded bodies, with ``decode`` and as
    ``PartitionHandler[Order]``; or ``process_events`` if handling several at once is cheaper; or
    ``process_columns`` to get several at once as Arrow columns, without an object for each. Calls
    run on the processor's event loop: code that blocks belongs in a ``BlockingPartitionHandler``.

    With ``key_concurrency`` above 1, ``process_events`` and ``process_error`` are called for
    several keys at once, so calls under way share the attributes of ``self``. Each call has events
    of one key, in order, and two calls under way never have the same key.
    """

    __module__ = "eventproc"

    columns: Sequence[str] = COLUMNS_WANTED
    """The columns that ``process_columns`` gets, by name; ``eventproc.columns.COLUMNS`` has all.
    With ``decode`` there is one more: ``value``, the decoded body."""

    decode: Decoder[T] | None = None
    """Decodes bodies, but only for ``process_value``, ``value_of``, ``values_of`` and the column
    ``value``. An event whose body cannot be decoded is given up at once, with a ``DecodeError``."""

    uses_transactions: bool = False
    """Whether calls use ``context.transaction()``. A processor whose store has no transactions then
    refuses to start."""

    @property
    def takes_columns(self) -> bool:
        """Whether a processor calls ``process_columns``: no method for events is defined."""
        own, base = type(self), PartitionHandler
        return (
            own.process_columns is not base.process_columns
            and own.process_event is base.process_event
            and own.process_value is base.process_value
            and own.process_events is base.process_events
        )

    async def prepare(self, partition_id: str) -> None:
        """Called on a backup of the partition, before it owns it: load what takes long to load.

        Only with a placement that has backups (``Ring(backups=1)``), and if this is overridden.
        ``initialize`` of the same instance is called when this processor becomes the owner; if this
        still runs then, it is cancelled first. If it raises, it is called again after a back-off.
        """

    async def discard(self, partition_id: str) -> None:
        """Called if this processor is no backup any more, and no owner: undo ``prepare``."""

    async def initialize(self, context: PartitionContext) -> None:
        """Called once, before the first event, and again if it raises.

        Each call of a handler runs in a task of its own. So what belongs to a task, such as a task
        group or a cancel scope of anyio, ends within the call that opened it: it cannot be opened
        here and closed in ``close``. Connections and ``asyncio.create_task`` are not bound to one.
        """

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Handle one event. It may be delivered again after a crash or a steal.

        An error concerns this event alone: the events before it are handled.
        """
        await self.process_value(context, self.value_of(event), event)

    async def process_value(
        self, context: PartitionContext, value: T, event: ReceivedEvent
    ) -> None:
        """Handle one event whose body is decoded; otherwise as ``process_event``. Set ``decode``.

        Not called for an event whose body cannot be decoded: it is given up.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_value")

    def value_of(self, event: ReceivedEvent) -> T:
        """Return the decoded body of an event.

        Raises:
            DecodeError: it cannot be decoded. If it leaves ``process_event``, the event is given
                up.
        """
        return _decoder_of(self).value_of(event)

    def values_of(self, events: Sequence[ReceivedEvent]) -> list[T]:
        """Return the decoded bodies of events, for ``process_events``. Call it before any effect.

        Raises:
            BatchError: some cannot be decoded. If it leaves ``process_events``, these are given up,
                and all others delivered again.
        """
        return _values_of(_decoder_of(self), events)

    async def process_columns(self, context: PartitionContext, columns: "pa.RecordBatch") -> None:
        """Handle a batch as Arrow columns, a row for each event, in order; see ``columns``.

        It may be delivered again after a crash or a steal. Called by a processor if this handler
        defines none of ``process_event``, ``process_value`` and ``process_events``, and by Spark's
        sink whenever it is defined. Needs the extra ``columns``.

        After a ``RowError`` only the rows that it names are delivered again. After any other error
        all are, in halves, until the row is found that fails alone.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_columns")

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order. It may be delivered again after a crash or a steal.

        An error is passed to ``process_error``. Then, after a back-off, the events of the call are
        delivered again one at a time, which shows the one that fails. Not delivered again are
        events up to one that was passed to ``context.done`` or ``context.checkpoint``; after a
        ``BatchError``, only the events that it names are.
        """
        if self.takes_columns:
            columns = _to_columns(self, events, context.partition_id)
            await self.process_columns(context, columns)
            return
        turns = LoopTurns()
        clock = turns.clock
        for number, event in enumerate(events):
            # Code that blocks would keep a stop, and all checkpoints, waiting.
            if clock() > turns.due_s:
                await turns.take()
            if context.is_ending:
                raise CallEndedEarlyError
            context.begin_event(event)
            try:
                await self.process_event(context, event)
            except OwnershipLostError:
                raise
            except Exception as error:
                raise BatchError([(event, error)], untried=events[number + 1 :]) from error
            if context.is_interrupted:
                raise CallEndedEarlyError
            context.done(event)

    async def on_idle(self, context: PartitionContext) -> None:
        """Called each time that no event came for ``idle_timeout``; never during another call."""

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Called with an error of ``initialize`` or ``process_events``, before the next attempt.

        Also called with a ``StoreRejectedError`` or ``StoreCorruptError`` if the partition cannot
        be served because of its checkpoint: after each attempt, and before ``initialize``.
        """

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Called once, at the end. ``context.checkpoint`` works unless ownership was lost."""


class BlockingPartitionHandler(Generic[T]):
    """Subclass this to handle events with ordinary functions.

    Each partition has a thread of its own, so a call that blocks delays only its own partition.
    A thread cannot be stopped from outside: a long call should check ``context.is_cancelled``.

    With ``key_concurrency`` above 1, each lane has a thread as well, and ``process_events`` and
    ``process_error`` run in them for several keys at once: use locks for what they share.
    """

    __module__ = "eventproc"

    columns: Sequence[str] = COLUMNS_WANTED
    """The columns that ``process_columns`` gets; see ``PartitionHandler.columns``."""

    decode: Decoder[T] | None = None
    """Decodes the bodies for ``process_value``; see ``PartitionHandler.decode``."""

    uses_transactions: bool = False
    """Whether calls use ``context.transaction()``; see ``PartitionHandler.uses_transactions``."""

    @property
    def takes_columns(self) -> bool:
        """Whether a processor calls ``process_columns``; see ``PartitionHandler``."""
        own, base = type(self), BlockingPartitionHandler
        return (
            own.process_columns is not base.process_columns
            and own.process_event is base.process_event
            and own.process_value is base.process_value
            and own.process_events is base.process_events
        )

    def prepare(self, partition_id: str) -> None:
        """Called in a thread, on a backup of the partition; see ``PartitionHandler.prepare``."""

    def discard(self, partition_id: str) -> None:
        """Called in a thread, to undo ``prepare``; see ``PartitionHandler.discard``."""

    def initialize(self, context: BlockingPartitionContext) -> None:
        """Called once, before the first event, and again if it raises."""

    def process_event(self, context: BlockingPartitionContext, event: ReceivedEvent) -> None:
        """Handle one event; see ``PartitionHandler.process_event``."""
        self.process_value(context, self.value_of(event), event)

    def process_value(
        self, context: BlockingPartitionContext, value: T, event: ReceivedEvent
    ) -> None:
        """Handle one event whose body is decoded; see ``PartitionHandler.process_value``."""
        raise NotImplementedError(f"{type(self).__name__} must define process_value")

    def value_of(self, event: ReceivedEvent) -> T:
        """Return the decoded body of an event; see ``PartitionHandler.value_of``."""
        return _decoder_of(self).value_of(event)

    def values_of(self, events: Sequence[ReceivedEvent]) -> list[T]:
        """Return the decoded bodies of events; see ``PartitionHandler.values_of``."""
        return _values_of(_decoder_of(self), events)

    def process_columns(self, context: BlockingPartitionContext, columns: "pa.RecordBatch") -> None:
        """Handle a batch as Arrow columns; see ``PartitionHandler.process_columns``."""
        raise NotImplementedError(f"{type(self).__name__} must define process_columns")

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order; see ``PartitionHandler.process_events``."""
        if self.takes_columns:
            self.process_columns(context, _to_columns(self, events, context.partition_id))
            return
        for number, event in enumerate(events):
            if context.is_cancelled:
                return
            if context.is_ending:
                raise CallEndedEarlyError
            context.begin_event(event)
            try:
                self.process_event(context, event)
            except OwnershipLostError:
                raise
            except Exception as error:
                raise BatchError([(event, error)], untried=events[number + 1 :]) from error
            context.done(event)

    def on_idle(self, context: BlockingPartitionContext) -> None:
        """Called each time that no event came for ``idle_timeout``; never during another call."""

    def process_error(self, context: BlockingPartitionContext, error: Exception) -> None:
        """Called with an error of ``initialize`` or ``process_events``, before the next attempt.

        Also called if the partition's checkpoint cannot be used; see ``PartitionHandler``.
        """

    def close(self, context: BlockingPartitionContext, reason: CloseReason) -> None:
        """Called once, at the end."""


def defines_columns(cls: type) -> bool:
    """Whether the handler class defines ``process_columns``, as a handler for Spark's sink may."""
    own = getattr(cls, "process_columns", None)
    return own not in {PartitionHandler.process_columns, BlockingPartitionHandler.process_columns}


def _decoder_of(handler: PartitionHandler[T] | BlockingPartitionHandler[T]) -> Decoder[T]:
    if handler.decode is None:
        raise TypeError(
            f"{type(handler).__name__} has no decoder: set decode, such as JsonDecoder(Order)"
        )
    return handler.decode


def _values_of(decoder: Decoder[T], events: Sequence[ReceivedEvent]) -> list[T]:
    values: list[T] = []
    failed: list[tuple[ReceivedEvent, Exception]] = []
    for event in events:
        try:
            values.append(decoder.value_of(event))
        except DecodeError as error:
            failed.append((event, error))
    if failed:
        raise _undecodable(events, failed)
    return values


def _undecodable(
    events: Sequence[ReceivedEvent], failed: Sequence[tuple[ReceivedEvent, Exception]]
) -> BatchError:
    numbers = {event.sequence_number for event, _ in failed}
    return BatchError(failed, untried=[e for e in events if e.sequence_number not in numbers])


def _to_columns(
    handler: PartitionHandler[T] | BlockingPartitionHandler[T],
    events: Sequence[ReceivedEvent],
    partition_id: str,
) -> "pa.RecordBatch":
    from eventproc.columns import to_columns  # noqa: PLC0415 - an extra
    from eventproc.columns._value_column import VALUE, with_column  # noqa: PLC0415 - an extra

    names = handler.columns
    if VALUE not in names:
        return to_columns(events, names, partition_id)
    column = _value_column(_decoder_of(handler), tuple(events))
    others = to_columns(events, [name for name in names if name != VALUE], partition_id)
    return with_column(others, list(names).index(VALUE), column)


def _value_column(decoder: Decoder[T], events: Sequence[ReceivedEvent]) -> "pa.Array":
    from eventproc.columns._value_column import value_array, value_type  # noqa: PLC0415 - it is an extra

    kind, values = value_type(decoder.shape), _values_of(decoder, events)
    try:
        return value_array(values, kind)
    except ValueError:
        failed: list[tuple[ReceivedEvent, Exception]] = []
        for event, value in zip(events, values, strict=True):
            try:
                value_array([value], kind)
            except ValueError as error:
                number = event.sequence_number
                failed.append((event, DecodeError(f"the body of event {number}: {error}")))
        raise _undecodable(events, failed) from None


HandlerFactory: TypeAlias = Annotated[
    Callable[[], PartitionHandler[Any] | BlockingPartitionHandler[Any]],
    Wanted("the handler class itself, or a function that makes a handler for a partition"),
]
"""Makes a handler for a partition: usually the handler class itself."""
