"""The partition context of a handler inside a Spark task.

Rule: a method that a task cannot support raises ``RefusedInSparkError`` instead of doing nothing.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.call_context import CallContext
from eventproc._delivery.scope import PartitionIdentity
from eventproc.models import Checkpoint, ReceivedEvent
from spark_integration._errors import RefusedInSparkError
from spark_integration._sink.records import TaskId


class SparkPartitionContext(CallContext):
    """The context of one partition in one task of one batch."""

    def __init__(
        self,
        identity: PartitionIdentity,
        progress: PartitionProgress,
        *,
        task: TaskId,
        begun: Checkpoint | None,
        is_replay: bool,
        defers_checkpoints: bool,
    ) -> None:
        super().__init__(identity, progress)
        self._task = task
        self._begun = begun
        self._is_replay = is_replay
        self._defers_checkpoints = defers_checkpoints

    @property
    def batch_id(self) -> int:
        """The micro-batch's id, which a repeated batch keeps."""
        return self._task.batch_id

    @property
    def query_id(self) -> str:
        """The query's id, the same in all of its runs."""
        return self._task.query_id

    @property
    def is_replay(self) -> bool:
        """Whether some of this batch's events may have been handled before, without a commit."""
        return self._is_replay

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The position of the stored checkpoint, at which the batch began."""
        return None if self._begun is None else self._begun.sequence_number

    @property
    def lag(self) -> None:
        """Unknown in a task; see the query's progress."""

    @property
    def lag_seconds(self) -> None:
        """Unknown in a task; see the query's progress."""

    @property
    def is_owned(self) -> bool:
        """Not supported: a query holds no lease.

        Raises:
            RefusedInSparkError: always, because only the commit shows whether another writer
                works for the consumer group.
        """
        raise self._refusal(
            "is_owned", "a query has no lease, and only its commit shows whether it was fenced"
        )

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Mark everything up to the event as handled; the commit of the batch stores that.

        Raises:
            RefusedInSparkError: the option ``deferCheckpoints`` is false. Nothing is stored yet
                when this method returns, so a handler that needs a stored checkpoint would be
                wrong.
        """
        if not self._defers_checkpoints:
            raise self._refusal(
                "checkpoint()",
                "a checkpoint is written when the whole batch is committed. If the handler does "
                "not rely on its being stored at once, set the option deferCheckpoints to true",
            )
        if event is not None:
            self.done(event)

    def open_transaction(
        self,
        event: ReceivedEvent | None,
        *,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> AbstractAsyncContextManager[Any]:
        """Not supported: Spark commits a batch when all of its tasks have ended.

        Raises:
            RefusedInSparkError: always.
        """
        del event, is_cancelled
        raise self._refusal(
            "transaction()",
            "Spark commits a batch as a whole, after all of its tasks, and may run a task twice at "
            "once, so a task cannot commit its rows with the position. Use an EventProcessor, or "
            "write rows under the key of their event, so that a repetition changes nothing",
        )

    def pause(self) -> None:
        """Not supported: a batch is planned before it is handled.

        Raises:
            RefusedInSparkError: always.
        """
        raise self._refusal(
            "pause()", "a batch is handled as a whole; limit its size by maxEventsPerTrigger"
        )

    def resume(self) -> None:
        """Do nothing: a partition is never paused."""

    def _refusal(self, what: str, why: str) -> RefusedInSparkError:
        return RefusedInSparkError(f"context.{what} is not available in a Spark sink: {why}")
