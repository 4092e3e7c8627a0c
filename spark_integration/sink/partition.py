"""Handles the rows of one partition in one task: filters them, calls the handler, reports."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import islice
from operator import lt

from eventproc.logs import get_logger
from eventproc.models import Checkpoint, CloseReason, ConsumerGroup, ReceivedEvent
from eventproc.partition.context import PartitionIdentity
from eventproc.ports import DeadLetterSink
from eventproc.statistics import DeliveryCounters
from spark_integration.errors import OrderLostError
from spark_integration.sink.calls import SinkCalls
from spark_integration.sink.context import SparkPartitionContext
from spark_integration.sink.options import SinkOptions
from spark_integration.sink.records import (
    PartitionReport,
    TaskId,
    covered_to,
    is_handled,
    without_state,
)
from spark_integration.sink.store import Checkpoints, StartedBatch


class Rows(ABC):
    """Successive rows of one partition."""

    numbers: Sequence[int]
    """The sequence number of each row."""

    columns: object
    """The rows as an Arrow batch, for handlers with ``process_columns``."""

    @property
    @abstractmethod
    def last_offset(self) -> str:
        """The offset of the last row."""

    @abstractmethod
    def only(self, is_wanted: Sequence[bool]) -> "Rows":
        """The rows whose element of ``is_wanted`` is true."""

    @abstractmethod
    def events(self) -> Sequence[ReceivedEvent]:
        """The rows as events."""


class SinkPartition:
    """One partition in one task."""

    def __init__(
        self,
        partition_id: str,
        *,
        options: SinkOptions,
        group: ConsumerGroup,
        task: TaskId,
        checkpoints: Checkpoints,
        dead_letters: DeadLetterSink | None,
    ) -> None:
        self._identity = PartitionIdentity(
            partition_id=partition_id, group=group, owner_id=task.owner_id
        )
        self._options = options
        self._task = task
        self._checkpoints = checkpoints
        self._dead_letters = dead_letters
        self._log = get_logger(
            "eventproc.spark",
            consumer_group=group.name,
            partition_id=partition_id,
            query_id=task.query_id,
            batch_id=task.batch_id,
        )
        self._counters = DeliveryCounters()
        self._found: Checkpoint | None = None
        self._is_known = False
        self._last_row: int | None = None
        self._last: tuple[int, str] | None = None
        self._context: SparkPartitionContext | None = None
        self._calls: SinkCalls | None = None
        self.repeated_count = 0
        """How many rows a checkpoint covered already."""

        self.is_replay = False

    async def take(self, rows: Rows) -> None:
        """Call the handler with those of the next rows that no checkpoint covers.

        Raises:
            HandlerFailedError: the handler failed for good.
            OrderLostError: the rows are not in order, or another task has some of them.
            FencedError: another driver of this query has begun a later batch.
        """
        self._check_order(rows.numbers)
        if not self._is_known:
            self._found = await self._checkpoints.read(self._identity.partition_id, self._task)
            self._is_known = True
        left = self._unhandled(rows)
        if left.numbers and self._calls is None:
            left = await self._begin(left)
        self.repeated_count += len(rows.numbers) - len(left.numbers)
        self._counters.received_count += len(rows.numbers)
        if left.numbers:
            await self._hand(left)
            self._last = (left.numbers[-1], left.last_offset)

    async def finish(self, reason: CloseReason) -> PartitionReport | None:
        """Close the handler; return what the driver has to commit, or ``None``."""
        if self._calls is None:
            return None
        calls, self._calls = self._calls, None
        await calls.close(reason)
        if self._last is None or self._context is None:
            return None
        sequence_number, offset = self._last
        return PartitionReport(
            partition_id=self._identity.partition_id,
            replaces=without_state(self._found),
            offset=offset,
            sequence_number=sequence_number,
            state=self._context.state,
            counters=self._counters,
        )

    async def _hand(self, rows: Rows) -> None:
        assert self._calls is not None
        if self._calls.takes_columns:
            await self._calls.hand_columns(rows.columns, rows.numbers[-1])
            self._counters.handled_count += len(rows.numbers)
            return
        events, count_max = rows.events(), self._options.events_per_call_max
        for begin in range(0, len(events), count_max):
            await self._calls.hand(events[begin : begin + count_max])

    async def _begin(self, left: Rows) -> Rows:
        """Write the begin record, then open the handler; return the rows that are still unhandled.

        A processor may move the checkpoint before the begin record is written. Then rows that the
        new checkpoint covers are left out, and the checkpoint is checked again.
        """
        while left.numbers:
            begun = await self._checkpoints.begin(
                self._identity.partition_id, self._found, left.numbers[0], self._task
            )
            self._found = begun.checkpoint
            still = self._unhandled(left)
            if len(still.numbers) == len(left.numbers):
                await self._open_handler(begun, left.numbers[0])
                break
            left = still
        return left

    async def _open_handler(self, begun: StartedBatch, first: int) -> None:
        self.is_replay = begun.is_replay
        if begun.is_replay:
            self._log.warning("spark_batch_replayed", sequence_number=first)
        self._context = context = SparkPartitionContext(
            self._identity,
            task=self._task,
            begun=self._found,
            is_replay=begun.is_replay,
            defers_checkpoints=self._options.defers_checkpoints,
        )
        if context.state and context.state_sequence_number != context.sequence_number:
            self._log.warning(
                "state_position_mismatched",
                sequence_number=context.sequence_number,
                state_sequence_number=context.state_sequence_number,
            )
        self._calls = SinkCalls(
            self._options,
            self._identity,
            context=context,
            dead_letters=self._dead_letters,
            counters=self._counters,
            log=self._log,
        )
        await self._calls.initialize()

    def _unhandled(self, rows: Rows) -> Rows:
        found = self._found
        if found is None or rows.numbers[0] > covered_to(found):
            return rows  # Sequence numbers rise, so the first one decides for all.
        is_left = [not is_handled(number, found) for number in rows.numbers]
        return rows if all(is_left) else rows.only(is_left)

    def _check_order(self, numbers: Sequence[int]) -> None:
        last, self._last_row = self._last_row, numbers[-1]
        is_next = last is None or last < numbers[0]
        if is_next and all(map(lt, numbers, islice(numbers, 1, None))):
            return
        for number in numbers:
            if last is not None and number <= last:
                raise OrderLostError(
                    f"partition {self._identity.partition_id!r}: row {number} came after {last}. "
                    "The sink needs each event once and in order: remove operations that shuffle, "
                    "sort or multiply rows between source and sink"
                )
            last = number
