"""The partition context of a handler inside a Spark task.

Rule: a method that a task cannot support raises ``RefusedInSparkError`` instead of doing nothing.
"""

import asyncio
from collections.abc import Sequence

from eventproc.models import Checkpoint, ConsumerGroup, ReceivedEvent, check_state
from eventproc.partition.context import CallContext, PartitionIdentity
from spark_integration.errors import RefusedInSparkError
from spark_integration.sink.records import TaskId


class SparkPartitionContext(CallContext):
    """The context of one partition in one task of one batch."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        task: TaskId,
        begun: Checkpoint | None,
        is_replay: bool,
        defers_checkpoints: bool,
    ) -> None:
        self._identity = identity
        self._task = task
        self._begun = begun
        self._is_replay = is_replay
        self._defers_checkpoints = defers_checkpoints
        self._loop = asyncio.get_running_loop()
        self._sequence_number = None if begun is None else begun.sequence_number
        self._state_number = None if begun is None else begun.state_sequence_number
        self._state = self._state_before_call = None if begun is None else begun.state
        self._is_held = False

    @property
    def partition_id(self) -> str:
        """The partition's id."""
        return self._identity.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The consumer group."""
        return self._identity.group

    @property
    def owner_id(self) -> str:
        """``spark/`` and the query's id."""
        return self._identity.owner_id

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
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` before the first one if there was no checkpoint."""
        return self._sequence_number

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

    @property
    def state(self) -> bytes | None:
        """The handler's state as of the last handled event."""
        return self._state

    @state.setter
    def state(self, value: bytes | None) -> None:
        check_state(self.partition_id, value)
        self._state = value if value is not None else b""

    @property
    def state_sequence_number(self) -> int | None:
        """The sequence number of the last event that the state includes."""
        return self._state_number

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Mark everything up to the event as handled; the commit of the batch stores that.

        Raises:
            RefusedInSparkError: the option ``deferCheckpoints`` is false. Nothing is stored yet
                when this method returns, and the option says that the handler can cope.
        """
        if not self._defers_checkpoints:
            raise self._refusal(
                "checkpoint()",
                "a checkpoint is written when the whole batch is committed. If the handler does "
                "not rely on its being stored at once, set the option deferCheckpoints to true",
            )
        if event is not None:
            self.done(event)

    def done(self, event: ReceivedEvent) -> None:
        """Mark everything up to the event as handled: this task does not deliver it again."""
        if not self._is_held and self.is_unhandled(event):
            self.advance(event.sequence_number)

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

    # Called by Delivery and SinkCalls.

    def begin_call(self) -> None:
        """Note that a call of the handler begins, which may be retried."""
        self._state_before_call = self._state
        self.busy_since_s = self._loop.time()

    def end_call(self, *, keeps_state: bool) -> None:
        """Note that the call has ended; restore the state from before it unless ``keeps_state``."""
        self.busy_since_s = None
        if not keeps_state:
            self._state = self._state_before_call

    def hold(self) -> None:
        """Keep the position until ``complete``: the state includes events above it."""
        self._is_held = True

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event is above the position."""
        return self._sequence_number is None or event.sequence_number > self._sequence_number

    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """Note that everything up to the last of these events is handled or given up."""
        self._is_held = False
        if self.is_unhandled(events[-1]):
            self.advance(events[-1].sequence_number)

    def advance(self, sequence_number: int) -> None:
        """Note that everything up to this event is handled and included in the state."""
        self._state_before_call = self._state
        self._sequence_number = self._state_number = sequence_number

    def _refusal(self, what: str, why: str) -> RefusedInSparkError:
        return RefusedInSparkError(f"context.{what} is not available in a Spark sink: {why}")
