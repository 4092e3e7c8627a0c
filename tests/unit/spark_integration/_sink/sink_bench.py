"""A test harness for tasks of a sink on one store, without Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import CloseReason, PartitionHandler, ReceivedEvent
from eventproc.columns import COLUMNS, to_columns
from eventproc.models import Checkpoint, CheckpointUpdate, ConsumerGroup, Isolation
from eventproc.ports import CheckpointStore, DeadLetterSink
from spark_integration import StoreRecipe
from spark_integration._sink.column_handler import RowBatch
from spark_integration._sink.hub_age import HubAge
from spark_integration._sink.options import GroupRecipe, SinkOptions
from spark_integration._sink.partition import Rows, SinkPartition
from spark_integration._sink.records import TaskId, commit_update
from spark_integration._sink.store import Checkpoints

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
TASK = TaskId(query_id="q", batch_id=7, run_id="r", task=0)
PATIENCE = timedelta(seconds=5)


def events(begin: int, end: int) -> list[ReceivedEvent]:
    """Return events with these sequence numbers."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        ReceivedEvent(body=b"1", sequence_number=n, offset=f"o{n}", enqueued_time=at)
        for n in range(begin, end)
    ]


class EventRows(Rows):
    """Rows made from a list of events."""

    def __init__(self, events: Sequence[ReceivedEvent]) -> None:
        self._events = events
        self.numbers = [event.sequence_number for event in events]

    @property
    def last_offset(self) -> str:
        return self._events[-1].offset

    def only(self, is_wanted: Sequence[bool]) -> Rows:
        return EventRows(
            [event for event, is_it in zip(self._events, is_wanted, strict=True) if is_it]
        )

    def events(self) -> Sequence[ReceivedEvent]:
        return self._events

    def batch(self) -> RowBatch:
        return RowBatch(to_columns(self._events, tuple(COLUMNS), "0"), self.numbers)


def rows(begin: int, end: int) -> Rows:
    """Return rows with these sequence numbers."""
    return EventRows(events(begin, end))


class RecordingHandler(PartitionHandler):
    """Records its events, and counts them in its state."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.replays: set[bool] = set()
        self.closed: list[CloseReason] = []

    async def process_event(self, context: Any, event: ReceivedEvent) -> None:
        self.numbers.append(event.sequence_number)
        self.replays.add(context.is_replay)
        context.state = b"%d" % (int(context.state or b"0") + 1)

    async def close(self, context: Any, reason: CloseReason) -> None:
        self.closed.append(reason)


class SinkHarness:
    """Makes tasks of a sink on one store, and commits their reports."""

    def __init__(self, store: CheckpointStore) -> None:
        self.store = store
        self.checkpoints = Checkpoints(store, GROUP, PATIENCE)

    def partition(
        self,
        handler: Any,
        task: TaskId = TASK,
        letters: DeadLetterSink | None = None,
        **options: Any,
    ) -> SinkPartition:
        made = SinkOptions(
            handler=lambda: handler,
            group=GroupRecipe(consumer_group="$Default", namespace="ns", eventhub_name="hub"),
            store=StoreRecipe(spec="sqlite:unused"),
            **options,
        )
        return SinkPartition(
            "0",
            options=made,
            group=GROUP,
            task=task,
            checkpoints=self.checkpoints,
            hub_age=HubAge(made),
            dead_letters=letters,
        )

    async def commit(self, partition: SinkPartition, task: TaskId = TASK) -> None:
        report = await partition.finish(CloseReason.SHUTDOWN)
        if report is not None:
            await self.checkpoints.commit(commit_update(task, report))

    async def write(self, number: int, **facts: Any) -> None:
        """Write a checkpoint as a processor does."""
        update = CheckpointUpdate(
            partition_id="0",
            offset=f"o{number}",
            sequence_number=number,
            replaces=await self.read(),
            writer="owner/0/pump",
            **facts,
        )
        await self.store.update_checkpoint(GROUP, update)

    async def read(self) -> Checkpoint | None:
        return await self.store.read_checkpoint(GROUP, "0")

    async def position(self) -> tuple[int | None, bytes | None, Isolation]:
        found = await self.read()
        assert found is not None
        return found.sequence_number, found.state, found.isolation


async def sink_harness() -> SinkHarness:
    """Return a harness with an empty store."""
    store = MemoryCheckpointStore()
    await store.open()
    return SinkHarness(store)
