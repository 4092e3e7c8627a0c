"""Handles the rows of one partition in one task: filters them, calls the handler, reports."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from operator import lt

from eventproc._base.logs import get_logger
from eventproc._core.delivery.offset_format import offset_format_of
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._group.pumps.stop_scope import StopScope
from eventproc.models import Checkpoint, CloseReason, ConsumerGroup, OffsetFormat, ReceivedEvent
from eventproc.models._statistics import DeliveryCounters
from eventproc.ports import DeadLetterSink
from spark_integration._errors import OrderLostError
from spark_integration._sink.calls import SinkCalls
from spark_integration._sink.context import SparkPartitionContext
from spark_integration._sink.hub_age import HubAge
from spark_integration._sink.options import EVENTS_PER_CALL, SinkOptions
from spark_integration._sink.records import PartitionReport, TaskId, covered_to, is_handled
from spark_integration._sink.store import Checkpoints, StartedBatch


class Rows(ABC):
    """Successive rows of one partition."""

    numbers: Sequence[int]
    """The sequence number of each row."""

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

    @abstractmethod
    def batch(self) -> Sequence[ReceivedEvent]:
        """The rows as a ``RowBatch``, for handlers with ``process_columns``."""


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
        hub_age: HubAge,
        dead_letters: DeadLetterSink | None,
    ) -> None:
        self._identity = PartitionIdentity(
            partition_id=partition_id, group=group, owner_id=task.owner_id
        )
        self._progress = PartitionProgress()
        self._options = options
        self._task = task
        self._checkpoints = checkpoints
        self._hub_age = hub_age
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
        self._is_of_this_hub = False
        self._format = OffsetFormat.AMQP
        self._last_row: int | None = None
        self._calls: SinkCalls | None = None
        self.repeated_count = 0
        """How many rows the stored checkpoint covered, so that no handler got them."""

        self.is_replay = False

    async def take(self, rows: Rows) -> None:
        """Call the handler with those of the next rows that no checkpoint covers.

        Raises:
            HandlerFailedError: the handler failed ``maxAttempts`` times.
            OrderLostError: the rows are not in order, or another task has some of them.
            FencedError: another driver of this query has begun a later batch.
            ConfigurationError: the checkpoint has another offset format than the rows.
            HubRecreatedError: the checkpoint is of a hub that was deleted and created again.
        """
        self._check_order(rows.numbers)
        if not self._is_known:
            self._format = offset_format_of(rows.last_offset) or OffsetFormat.AMQP
            self._found = await self._checkpoints.read(
                self._identity.partition_id, self._task, self._format
            )
            self._is_known = True
        left = self._unhandled(rows)
        if len(left.numbers) < len(rows.numbers):
            await self._refuse_former_hub(rows)
        if self._calls is None:
            left = await self._begin(left)
        self.repeated_count += len(rows.numbers) - len(left.numbers)
        self._counters.received_count += len(rows.numbers)
        if left.numbers:
            await self._deliver(left)

    async def finish(self, reason: CloseReason) -> PartitionReport | None:
        """Close the handler; return what the driver has to commit, or ``None``."""
        if self._calls is None:
            return None
        calls, self._calls = self._calls, None
        await calls.close(reason)
        progress = self._progress.snapshot()
        if progress is None:
            return None
        return PartitionReport(
            partition_id=self._identity.partition_id,
            replaces=self._found and replace(self._found, state=None),
            offset=progress.offset,
            sequence_number=progress.sequence_number,
            state=progress.state,
            counters=self._counters,
        )

    async def _deliver(self, rows: Rows) -> None:
        assert self._calls is not None
        if self._calls.takes_columns:
            events, usual = rows.batch(), len(rows.numbers)
        else:
            events, usual = rows.events(), EVENTS_PER_CALL
        count_max = self._options.events_per_call_max or usual
        for begin in range(0, len(events), count_max):
            await self._calls.deliver(events[begin : begin + count_max])

    async def _begin(self, left: Rows) -> Rows:
        """Write the begin record, then open the handler; return the rows that are still unhandled.

        A processor may move the checkpoint before the begin record is written. Then rows that the
        new checkpoint covers are left out, and the checkpoint is checked again.
        """
        while left.numbers:
            begun = await self._checkpoints.begin(
                self._identity.partition_id,
                self._found,
                left.numbers[0],
                self._task,
                self._format,
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
        if self._found is not None:
            self._progress.restore(self._found)
        context = SparkPartitionContext(
            self._identity,
            self._progress,
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
        scope = PartitionScope(
            identity=self._identity,
            # There is no lease that could expire.
            stop=StopScope(lambda: math.inf),
            counters=self._counters,
            log=self._log,
        )
        self._calls = SinkCalls(
            self._options,
            scope,
            context=context,
            progress=self._progress,
            dead_letters=self._dead_letters,
        )
        await self._calls.initialize()

    async def _refuse_former_hub(self, rows: Rows) -> None:
        """Check, before the first rows are left out as handled, that they are of the same hub."""
        found = self._found
        if found is None or self._is_of_this_hub:
            return
        covered = rows.only([is_handled(number, found) for number in rows.numbers])
        await self._hub_age.refuse_former(found, covered.events()[0])
        self._is_of_this_hub = True

    def _unhandled(self, rows: Rows) -> Rows:
        found = self._found
        if found is None or rows.numbers[0] > covered_to(found):
            return rows  # Sequence numbers rise, so no later row is covered.
        is_left = [not is_handled(number, found) for number in rows.numbers]
        return rows.only(is_left)

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
