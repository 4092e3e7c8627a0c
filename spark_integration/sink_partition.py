"""The rows of one partition in one task, on their way through the user's handler."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import islice
from operator import lt

from eventproc.context import PartitionIdentity
from eventproc.logs import get_logger
from eventproc.models import Checkpoint, CloseReason, ConsumerGroup, ReceivedEvent
from eventproc.ports import DeadLetterSink
from eventproc.statistics import Tally
from spark_integration.errors import OrderLostError
from spark_integration.sink_calls import SinkCalls
from spark_integration.sink_context import SparkPartitionContext
from spark_integration.sink_options import SinkOptions
from spark_integration.sink_records import (
    PartitionReport,
    TaskId,
    covered_to,
    is_handled,
    without_state,
)
from spark_integration.sink_store import Begun, Checkpoints


class Rows(ABC):
    """Rows of one partition that came together, in order."""

    numbers: Sequence[int]
    """The sequence number of each."""

    columns: object
    """An Arrow batch, for handlers that take columns."""

    @property
    @abstractmethod
    def last_offset(self) -> str:
        """The offset of the last row."""

    @abstractmethod
    def only(self, is_wanted: Sequence[bool]) -> "Rows":
        """Some of them."""

    @abstractmethod
    def events(self) -> Sequence[ReceivedEvent]:
        """All of them as events."""


class SinkPartition:
    """Takes the rows of a partition as they come."""

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
        self._tally = Tally()
        self._found: Checkpoint | None = None
        self._is_known = False
        self._last_row: int | None = None
        self._last: tuple[int, str] | None = None
        self._context: SparkPartitionContext | None = None
        self._calls: SinkCalls | None = None
        self.repeated_count = 0
        """Rows that a checkpoint covered already."""

        self.is_replay = False

    async def take(self, rows: Rows) -> None:
        """Hand over those of the next rows that no checkpoint covers.

        Raises:
            HandlerFailedError: the handler failed as often as it may.
            OrderLostError: the rows are not in order, or another task has some of them.
            FencedError: another driver of this query has gone on.
        """
        self._check_order(rows.numbers)
        if not self._is_known:
            self._found = await self._checkpoints.read(self._identity.partition_id, self._task)
            self._is_known = True
        left = self._unhandled(rows)
        if left.numbers and self._calls is None:
            left = await self._begin(left)
        self.repeated_count += len(rows.numbers) - len(left.numbers)
        self._tally.received_count += len(rows.numbers)
        if left.numbers:
            await self._hand(left)
            self._last = (left.numbers[-1], left.last_offset)

    async def finish(self, reason: CloseReason) -> PartitionReport | None:
        """Close the handler; return what is to be committed, if anything is."""
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
            tally=self._tally,
        )

    async def _hand(self, rows: Rows) -> None:
        assert self._calls is not None
        if self._calls.takes_columns:
            await self._calls.hand_columns(rows.columns, rows.numbers[-1])
            self._tally.handled_count += len(rows.numbers)
            return
        events, most = rows.events(), self._options.events_per_call_max
        for begin in range(0, len(events), most):
            await self._calls.hand(events[begin : begin + most])

    async def _begin(self, left: Rows) -> Rows:
        """Mark the checkpoint and get the handler ready; return what is left to do then."""
        while left.numbers:
            begun = await self._checkpoints.begin(
                self._identity.partition_id, self._found, left.numbers[0], self._task
            )
            self._found = begun.checkpoint
            still = self._unhandled(left)
            if len(still.numbers) == len(left.numbers):
                await self._get_ready(begun, left.numbers[0])
                break
            left = still
        return left

    async def _get_ready(self, begun: Begun, first: int) -> None:
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
                "state_out_of_step",
                sequence_number=context.sequence_number,
                state_sequence_number=context.state_sequence_number,
            )
        self._calls = SinkCalls(
            self._options,
            self._identity,
            context=context,
            dead_letters=self._dead_letters,
            tally=self._tally,
            log=self._log,
        )
        await self._calls.initialize()

    def _unhandled(self, rows: Rows) -> Rows:
        found = self._found
        if found is None or rows.numbers[0] > covered_to(found):
            return rows  # They rise, so nothing is asked of each.
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
                    "The sink needs each event once and in order: remove what shuffles, sorts or "
                    "multiplies rows between source and sink"
                )
            last = number
