"""Calls one handler, with the retries and failure actions of a processor.

Rule: when the failure policy stops the partition, the task fails. Spark then retries the task with
the same rows, and fails the query after the last retry.
"""

from collections.abc import Sequence

from eventproc._base.retries import Backoff, waits
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.failure_actions import FailureActions
from eventproc._delivery.handler_calls import HandlerCalls
from eventproc._delivery.scope import PartitionScope
from eventproc._group.pumps.stop_scope import PartitionStoppedError
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.ports import DeadLetterSink
from spark_integration._errors import HandlerFailedError
from spark_integration._sink.column_handler import ColumnHandler
from spark_integration._sink.context import SparkPartitionContext
from spark_integration._sink.options import SinkOptions


class SinkCalls:
    """Calls the handler of one partition in one task."""

    def __init__(
        self,
        options: SinkOptions,
        scope: PartitionScope,
        *,
        context: SparkPartitionContext,
        progress: PartitionProgress,
        dead_letters: DeadLetterSink | None,
    ) -> None:
        self._handler = options.make_handler()
        self._context = context
        self._progress = progress
        wait_s = waits(Backoff())
        policy = options.failure_policy
        self._calls = HandlerCalls(
            self._handler,
            policy=policy,
            action=FailureActions(
                policy.action, sink=dead_letters, scope=scope, wait_s=wait_s
            ).apply,
            scope=scope,
            wait_s=wait_s,
        )

    @property
    def takes_columns(self) -> bool:
        """Whether the handler has ``process_columns``; then pass a ``RowBatch`` to ``deliver``."""
        return isinstance(self._handler, ColumnHandler)

    async def initialize(self) -> None:
        """Call ``initialize``. An error fails the task, which Spark retries."""
        try:
            await self._handler.initialize(self._context)
        except Exception as error:
            raise self._failed("failed in initialize()", error) from error

    async def deliver(self, events: Sequence[ReceivedEvent]) -> None:
        """Call the handler until each event is handled, skipped or dead-lettered.

        Raises:
            HandlerFailedError: the handler failed ``maxAttempts`` times.
        """
        try:
            await self._calls.deliver(self._progress.admit(events), self._context)
        except PartitionStoppedError as stopped:
            error = stopped.__cause__
            raise self._failed("failed as often as maxAttempts allows", error) from error

    async def close(self, reason: CloseReason) -> None:
        """Call the handler's ``close``. An error fails the task."""
        try:
            await self._handler.close(self._context, reason)
        except Exception as error:
            raise self._failed("failed in close()", error) from error

    def _failed(self, what: str, error: BaseException | None) -> HandlerFailedError:
        return HandlerFailedError(
            f"the handler of partition {self._context.partition_id!r} {what}: {error!r}"
        )
