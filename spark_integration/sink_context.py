"""What a handler sees of its partition inside a Spark task.

Rule: what a task can know is told, and what it cannot do is refused; nothing is only pretended.
"""

import asyncio
from collections.abc import Sequence

from eventproc.context import CallContext, PartitionIdentity
from eventproc.errors import StateTooLargeError
from eventproc.models import STATE_BYTES_MAX, Checkpoint, ConsumerGroup, ReceivedEvent
from spark_integration.errors import RefusedInSparkError
from spark_integration.sink_records import TaskId


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
        """Which partition this is."""
        return self._identity.partition_id

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group it is read for."""
        return self._identity.group

    @property
    def owner_id(self) -> str:
        """``spark/`` and the query's id."""
        return self._identity.owner_id

    @property
    def batch_id(self) -> int:
        """Which micro-batch this is: the same when it comes again."""
        return self._task.batch_id

    @property
    def query_id(self) -> str:
        """Which query this is: the same for all its runs."""
        return self._task.query_id

    @property
    def is_replay(self) -> bool:
        """Whether a part of this batch may have been handled before, and was not committed."""
        return self._is_replay

    @property
    def sequence_number(self) -> int | None:
        """The last handled event; ``None`` before the first where there was no checkpoint."""
        return self._sequence_number

    @property
    def checkpointed_sequence_number(self) -> int | None:
        """The last event that the stored checkpoint covers: where the batch began."""
        return None if self._begun is None else self._begun.sequence_number

    @property
    def lag(self) -> None:
        """Not known here; the query's progress tells it."""

    @property
    def lag_seconds(self) -> None:
        """Not known here; the query's progress tells it."""

    @property
    def is_owned(self) -> bool:
        """There is no lease in Spark.

        Raises:
            RefusedInSparkError: always. ``True`` would be a guess: only the commit finds out.
        """
        raise self._refusal("is_owned", "a query has no lease, and only its commit finds out")

    @property
    def state(self) -> bytes | None:
        """The handler's own state, as of the last handled event."""
        return self._state

    @state.setter
    def state(self, value: bytes | None) -> None:
        if value is not None and len(value) > STATE_BYTES_MAX:
            raise StateTooLargeError(
                f"state of partition {self.partition_id!r} has {len(value)} bytes, the limit is "
                f"{STATE_BYTES_MAX}: keep less, or keep it elsewhere"
            )
        self._state = value if value is not None else b""

    @property
    def state_sequence_number(self) -> int | None:
        """The position that the state belongs to."""
        return self._state_number

    async def checkpoint(self, event: ReceivedEvent | None = None) -> None:
        """Take down that everything up to the event is handled; stored when the batch is committed.

        Raises:
            RefusedInSparkError: unless the option ``deferCheckpoints`` is true, because nothing is
                stored when this returns.
        """
        if not self._defers_checkpoints:
            raise self._refusal(
                "checkpoint()",
                "a checkpoint is written when the whole batch is committed. If the handler can do "
                "without knowing that it is stored, set the option deferCheckpoints to true",
            )
        if event is not None:
            self.done(event)

    def done(self, event: ReceivedEvent) -> None:
        """Everything up to the event is handled; it does not come again within this task."""
        if not self._is_held and self.is_unhandled(event):
            self.advance(event.sequence_number)

    def pause(self) -> None:
        """A batch is planned before it is handled.

        Raises:
            RefusedInSparkError: always.
        """
        raise self._refusal("pause()", "a batch is handled as a whole; let maxEventsPerTrigger cap")

    def resume(self) -> None:
        """Nothing is ever paused."""

    # For the delivery.

    def begin_call(self) -> None:
        """A call of the handler begins, which may come again if it does not succeed."""
        self._state_before_call = self._state
        self.busy_since_s = self._loop.time()

    def end_call(self, *, keeps_state: bool) -> None:
        """The call is over; what one that failed did to the state since is undone."""
        self.busy_since_s = None
        if not keeps_state:
            self._state = self._state_before_call

    def hold(self) -> None:
        """Events above the position are in the state, so it waits for the next ``complete``."""
        self._is_held = True

    def is_unhandled(self, event: ReceivedEvent) -> bool:
        """Whether the event lies above what was handled."""
        return self._sequence_number is None or event.sequence_number > self._sequence_number

    def complete(self, events: Sequence[ReceivedEvent]) -> None:
        """All up to the last of these is handled, or given up."""
        self._is_held = False
        if self.is_unhandled(events[-1]):
            self.advance(events[-1].sequence_number)

    def advance(self, sequence_number: int) -> None:
        """Everything up to here is handled, and the state includes it."""
        self._state_before_call = self._state
        self._sequence_number = self._state_number = sequence_number

    def _refusal(self, what: str, why: str) -> RefusedInSparkError:
        return RefusedInSparkError(f"context.{what} cannot be had in a Spark sink: {why}")
