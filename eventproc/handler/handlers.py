"""The handler classes that users subclass.

One handler serves one partition, with one call at a time if ``key_concurrency`` is 1. The order of
calls: ``initialize``; any number of ``process_events``, ``process_error``, ``on_idle``; ``close``.
"""

from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from eventproc.concurrency.tasks import CallEndedEarlyError
from eventproc.errors import EventProcError, OwnershipLostError
from eventproc.handler.context import BlockingPartitionContext, PartitionContext
from eventproc.logs import shown
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.settings import Wanted

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS_WANTED: Final = ("body", "partition", "offset", "sequenceNumber", "enqueuedTime")
"""The columns that ``process_columns`` gets if the handler names no others."""


class BatchError(EventProcError):
    """Raise it from ``process_events`` to name the events that failed; all others are handled.

    Only the failed events are delivered again, one at a time, before any newer event.
    """

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
            f"{len(failed)} of the events failed, first {event.sequence_number}: {shown(error)}"
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
        super().__init__(message if error is None else f"{message}: {shown(error)}")
        self.error = error

    @property
    def shown(self) -> Exception:
        """The error to report: the one of the rows if it is known, otherwise this one."""
        cause = self.__cause__
        return self.error or (cause if isinstance(cause, Exception) else self)


class PartitionHandler:
    """Subclass this to handle events with coroutines. One instance serves one partition.

    Define ``process_event``; or ``process_events`` if handling several at once is cheaper; or
    ``process_columns`` to get several at once as Arrow columns, without an object for each. Calls
    run on the processor's event loop: code that blocks belongs in a ``BlockingPartitionHandler``.

    With ``key_concurrency`` above 1, ``process_events`` and ``process_error`` are called for
    several keys at once, so calls under way share the attributes of ``self``. Each call has events
    of one key, in order, and two calls under way never have the same key.
    """

    columns: Sequence[str] = COLUMNS_WANTED
    """The columns that ``process_columns`` gets, by name; ``eventproc.columns.COLUMNS`` has all."""

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
        """Called once, before the first event, and again if it raises."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Handle one event. It may be delivered again after a crash or a steal.

        An error concerns this event alone: the events before it are handled.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define process_event or process_events"
        )

    async def process_columns(self, context: PartitionContext, columns: "pa.RecordBatch") -> None:
        """Handle a batch as Arrow columns, a row for each event, in order; see ``columns``.

        It may be delivered again after a crash or a steal. Called by a processor if this handler
        defines neither ``process_event`` nor ``process_events``, and by Spark's sink whenever it is
        defined. Needs the extra ``columns``.

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
            columns = _to_columns(events, self.columns, context.partition_id)
            await self.process_columns(context, columns)
            return
        for number, event in enumerate(events):
            if context.is_ending:
                raise CallEndedEarlyError
            context.begin_event(event)
            try:
                await self.process_event(context, event)
            except OwnershipLostError:
                raise
            except Exception as error:
                raise BatchError([(event, error)], untried=events[number + 1 :]) from error
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


class BlockingPartitionHandler:
    """Subclass this to handle events with ordinary functions.

    Each partition has a thread of its own, so a call that blocks delays only its own partition.
    A thread cannot be stopped from outside: a long call should check ``context.is_cancelled``.

    With ``key_concurrency`` above 1, each lane has a thread as well, and ``process_events`` and
    ``process_error`` run in them for several keys at once: use locks for what they share.
    """

    columns: Sequence[str] = COLUMNS_WANTED
    """The columns that ``process_columns`` gets; see ``PartitionHandler.columns``."""

    uses_transactions: bool = False
    """Whether calls use ``context.transaction()``; see ``PartitionHandler.uses_transactions``."""

    @property
    def takes_columns(self) -> bool:
        """Whether a processor calls ``process_columns``; see ``PartitionHandler``."""
        own, base = type(self), BlockingPartitionHandler
        return (
            own.process_columns is not base.process_columns
            and own.process_event is base.process_event
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
        raise NotImplementedError(
            f"{type(self).__name__} must define process_event or process_events"
        )

    def process_columns(self, context: BlockingPartitionContext, columns: "pa.RecordBatch") -> None:
        """Handle a batch as Arrow columns; see ``PartitionHandler.process_columns``."""
        raise NotImplementedError(f"{type(self).__name__} must define process_columns")

    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order; see ``PartitionHandler.process_events``."""
        if self.takes_columns:
            self.process_columns(context, _to_columns(events, self.columns, context.partition_id))
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


def _to_columns(
    events: Sequence[ReceivedEvent], names: Sequence[str], partition_id: str
) -> "pa.RecordBatch":
    from eventproc.columns import to_columns  # noqa: PLC0415 - it is an extra

    return to_columns(events, names, partition_id)


HandlerFactory: TypeAlias = Annotated[
    Callable[[], PartitionHandler | BlockingPartitionHandler],
    Wanted("the handler class itself, or a function that makes a handler for a partition"),
]
"""Makes a handler for a partition: usually the handler class itself."""
