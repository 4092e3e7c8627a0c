"""Calls ``process_columns`` of a handler, with all columns of the rows."""

from collections.abc import Sequence

from eventproc.handler import PartitionContext, PartitionHandler
from eventproc.models import CloseReason, ReceivedEvent
from spark_integration.sink.row_batch import RowBatch


class ColumnHandler(PartitionHandler):
    """Passes rows to a handler as Arrow columns, including columns that the query added."""

    def __init__(self, handler: PartitionHandler) -> None:
        self._handler = handler

    @property
    def takes_columns(self) -> bool:
        """Whether failed calls are tried again in halves."""
        return True

    async def initialize(self, context: PartitionContext) -> None:
        """Pass it on."""
        await self._handler.initialize(context)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Call ``process_columns``."""
        assert isinstance(events, RowBatch), "the sink hands rows"
        await self._handler.process_columns(context, events.rows)

    async def process_error(self, context: PartitionContext, error: Exception) -> None:
        """Pass it on."""
        await self._handler.process_error(context, error)

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Pass it on."""
        await self._handler.close(context, reason)
