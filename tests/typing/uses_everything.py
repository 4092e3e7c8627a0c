"""A program that uses every public name as users do. Type checkers read it; nobody runs it.

``make lint`` checks it with mypy and, against the installed packages, with pyright.
``tests/architecture/test_public_surface.py`` knows that no name is missing.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, assert_type

import eventproc
import spark_integration as spark
from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.memory import GroupRecords, MemoryAccount, MemoryCheckpointStore
from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc import (
    BatchError,
    BlockingHeldResource,
    BlockingPartitionContext,
    BlockingPartitionHandler,
    BlockingResourceHandler,
    CheckpointPolicy,
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    HeldResource,
    PartitionContext,
    PartitionHandler,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
    RowError,
    admin,
    columns,
    compat,
    emulator,
    errors,
    health,
    logs,
    models,
    placements,
    ports,
    testing,
)
from eventproc.compat import azure_eventhub
from eventproc.compat.azure_eventhub import aio
from eventproc.dead_letters import (
    FunctionDeadLetterSink,
    HandlerTarget,
    HubTarget,
    LetterFilter,
    LetterOutcome,
    LetterResult,
    MemoryDeadLetterReader,
    MemoryDeadLetterSink,
    ReplayTarget,
    drop,
    matching,
    replay,
)
from eventproc.dead_letters.blob import BlobDeadLetterReader, BlobDeadLetterSink
from eventproc.decoders import (
    CloudEvent,
    CloudEventDecoder,
    Decoder,
    FunctionDecoder,
    JsonDecoder,
    MsgpackDecoder,
)
from eventproc.rosters import FixedRoster
from eventproc.rosters.kubernetes import ReplicaSetRoster, StatefulSetRoster
from eventproc.sources.capture import (
    BlobCaptureFiles,
    CapturedHub,
    CaptureFiles,
    FolderCaptureFiles,
)
from eventproc.sources.eventhubs import (
    EventHubDeadLetterReader,
    EventHubDeadLetterSink,
    EventHubOptions,
    EventHubPublisher,
    EventHubSource,
    ReceivePath,
    Transport,
)
from eventproc.sources.kafka import KafkaEventSource, KafkaOptions, KafkaPublisher
from eventproc.sources.memory import MemoryEventSource, MemoryHub, MemoryPublisher
from eventproc.sources.rabbitmq import (
    PartitionPublisher,
    QueueHash,
    QueueOptions,
    QueuePublisher,
    RabbitDeadLetterReader,
    RabbitDeadLetterSink,
    RabbitQueues,
)
from eventproc.state import JsonCodec, StateCodec, Stateful, TypedState
from eventproc.telemetry import Telemetry

SECOND = timedelta(seconds=1)
NOW = datetime.now(UTC)
GROUP = models.ConsumerGroup(fully_qualified_namespace="n", eventhub_name="orders")
EVENT = models.ReceivedEvent(body=b"1", sequence_number=0, offset="0", enqueued_time=NOW)


# --- handlers, bodies and state ------------------------------------------------------------------


@dataclass
class Order:
    cents: int


@dataclass
class Total:
    cents: int = 0


TOTAL: TypedState[Total] = TypedState(Total, codec=JsonCodec(Total))


def total_of(context: Stateful, codec: StateCodec[Total]) -> Total:
    return codec.decode(context.state or b"{}")


class Orders(PartitionHandler[Order]):
    decode: Decoder[Order] | None = JsonDecoder(Order)

    async def process_value(
        self, context: PartitionContext, value: Order, event: models.ReceivedEvent
    ) -> None:
        with TOTAL.edit(context) as total:
            total.cents += value.cents
        if not context.is_owned:
            raise BatchError([(event, ValueError(total_of(context, JsonCodec(Total)).cents))])


class Rows(PartitionHandler[Any]):
    columns = ("value", *columns.COLUMNS)

    async def process_columns(self, context: PartitionContext, columns: Any) -> None:
        properties = columns["properties"][0].as_py()
        raise RowError(0, error=ValueError(properties))


class Blocking(BlockingPartitionHandler[Any]):
    def process_events(
        self, context: BlockingPartitionContext, events: Sequence[models.ReceivedEvent]
    ) -> None:
        context.state = len(events).to_bytes(8)


def cloud_order(event: models.ReceivedEvent) -> CloudEvent[Order]:
    decoders: list[Decoder[Order]] = [MsgpackDecoder(Order), FunctionDecoder(lambda _: Order(1))]
    return CloudEventDecoder(decoders[0]).decode(event.body, event)


def table_of(events: Sequence[models.ReceivedEvent]) -> object:
    if isinstance(events, models.EventBatch):
        return events.columns(["body"], "0")
    return columns.to_columns(events, ["body"], "0"), columns.schema_of(["body"])


# --- a processor ---------------------------------------------------------------------------------

CONFIG = EventProcessorConfig(
    load_balancing_strategy=models.LoadBalancingStrategy.GREEDY,
    placement=placements.Published(placements.ByLoad()),
    checkpoint_policy=CheckpointPolicy(max_events=10, interval=SECOND),
    failure_policy=FailurePolicy(attempts_max=3, action=FailureAction.DEAD_LETTER),
    receiver_backoff=eventproc.Backoff(maximum=SECOND),
    recreated_hub=eventproc.RecreatedHub.EARLIEST,
    key_selector=eventproc.partition_key_of,
    initial_position=models.EventPosition.latest(),
)


async def process(source: ports.EventSource, store: ports.CheckpointStore) -> None:
    processor = EventProcessor(
        source=source,
        store=store,
        handler=Orders,
        config=CONFIG,
        dead_letters=MemoryDeadLetterSink(),
        telemetry=Telemetry(),
        roster=FixedRoster(["a", "b"], own_id="a"),
        health=health.HealthServer("127.0.0.1:0"),
    )
    async with processor:
        statistics = processor.statistics()
        assert_type(statistics, models.ProcessorStatistics)
        pumps: Sequence[models.PumpStatistics] = statistics.pumps
        counters: models.DeliveryCounters = statistics.counters
        print(pumps, counters.handled_count, processor.owner_id, processor.consumer_group)
        processor.pause(pumps[0].partition_id)
        processor.resume(pumps[0].partition_id)
    await processor.start()
    await processor.stop()
    await processor.serve()
    processor.run()


class Key(ResourceHandler):
    async def hold(self, held: HeldResource) -> None:
        await asyncio.sleep(held.epoch)


class BlockingKey(BlockingResourceHandler):
    def hold(self, held: BlockingHeldResource) -> None:
        print(held.name)


async def hold(store: ports.CheckpointStore) -> models.HoldCounters:
    processor = ResourceProcessor(
        resources=Resources(["a"]),
        store=store,
        group="keys",
        handler=Key,
        config=ResourceProcessorConfig(placement=placements.Ring()),
    )
    await ResourceProcessor(
        resources=Resources(["a"]), store=store, group="keys", handler=BlockingKey
    ).serve()
    statistics: models.ResourceProcessorStatistics = processor.statistics()
    resources: Sequence[models.ResourceStatistics] = statistics.resources
    return resources[0].counters


# --- ports of one's own --------------------------------------------------------------------------


class Receiver(ports.PartitionReceiver):
    async def receive(
        self, *, events_max: int, wait_max: timedelta
    ) -> Sequence[models.ReceivedEvent]:
        return [EVENT][:events_max]

    async def receive_batch(
        self, *, events_max: int, wait_max: timedelta, gathering: ports.Gathering
    ) -> Sequence[models.ReceivedEvent]:
        return await self.receive(events_max=gathering.least, wait_max=gathering.wait)

    async def close(self) -> None: ...

    @property
    def last_enqueued(self) -> models.LastEnqueued | None:
        return models.LastEnqueued(sequence_number=1, offset="1", enqueued_time=None)


class Source(ports.EventSource):
    @property
    def fully_qualified_namespace(self) -> str:
        return "n"

    @property
    def eventhub_name(self) -> str:
        return "orders"

    @property
    def offset_format(self) -> models.OffsetFormat:
        return models.OffsetFormat.AMQP

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def check_consumer_group(self, name: str) -> None: ...

    async def partition_ids(self) -> Sequence[str]:
        return ["0"]

    async def partition_properties(self, partition_id: str) -> models.PartitionProperties:
        return models.PartitionProperties(
            partition_id=partition_id,
            beginning_sequence_number=0,
            last_enqueued_sequence_number=1,
            last_enqueued_offset=models.NO_OFFSET,
            last_enqueued_time=None,
            is_empty=False,
        )

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: models.EventPosition
    ) -> ports.PartitionReceiver:
        return Receiver()


class Bench(testing.SourceBench):
    def source(self) -> ports.EventSource:
        return Source()

    async def publish(self, partition_id: str, *bodies: bytes) -> None: ...


class Store(ports.ForwardingStore):
    """Forwards every call, and looks at one."""

    async def claim_ownership(
        self, group: models.ConsumerGroup, claims: Sequence[models.OwnershipClaim]
    ) -> Sequence[models.ClaimResult]:
        results = await super().claim_ownership(group, claims)
        won = [each.ownership for each in results if each.outcome is models.WriteOutcome.WON]
        owned: Sequence[models.PartitionOwnership | None] = won
        print(owned)
        return results

    async def records(self, member: models.Member) -> None:
        claims: models.OwnershipSnapshot = await self.list_ownership(GROUP)
        members: models.MembershipSnapshot = await self.list_members(GROUP)
        announced: models.MemberResult = await self.announce_member(GROUP, member)
        record = models.GroupRecord(name="mine", content=b"")
        written: models.RecordResult = await self.write_record(GROUP, record)
        if member.status is models.MemberStatus.ACTIVE and len(record.content) < limits()[0]:
            print(claims, members, announced, written)

    async def checkpoint(self, update: models.CheckpointUpdate) -> models.Checkpoint | None:
        result: models.CheckpointResult = await self.update_checkpoint(GROUP, update)
        return result.checkpoint


def limits() -> tuple[int, ...]:
    return (
        *(models.RECORD_BYTES_MAX, models.STATE_BYTES_MAX),
        *(models.COMPLETED_RANGES_MAX, models.SEQUENCE_NUMBER_MAX),
    )


def isolations() -> list[models.Isolation]:
    known = [models.ALONE, models.IN_BATCH, models.IN_PART, models.NOT_BEGUN, models.alone(2)]
    return [each for each in known if each.mode is not models.IsolationMode.NONE]


async def in_transaction(transactions: ports.Transactions) -> ports.Transaction:
    begun: AbstractAsyncContextManager[ports.Transaction] = transactions.begin(
        is_blocking=False, idle_max=SECOND
    )
    async with begun as transaction:
        return transaction


async def settle(source: ports.QueueSource, ranges: Sequence[models.SequenceRange]) -> None:
    position = models.EventPosition.earliest()
    receiver: ports.QueueReceiver = await source.open_receiver("$Default", "0", position)
    print(ranges[0].first, receiver.last_enqueued, source.unsettled_max)


class ByName(placements.Placement):
    def order(self, state: placements.GroupState) -> placements.Order:
        facts: Mapping[str, placements.MemberFacts] = state.members
        loads: placements.Loads | None = state.loads
        print(loads)
        return placements.Clockwise(placements.Circle.of(facts))


RULES: list[placements.Placement] = [
    *(placements.Even(), placements.Ordinal(), placements.Weighted(), ByName()),
]


class Reporter(ports.HealthReporter):
    async def begin(self, member: ports.WatchedMember) -> None:
        statistics: models.GroupStatistics | None = member.statistics()
        print(statistics, member.phase() is models.Phase.SERVING)

    async def end(self, member: ports.WatchedMember) -> None: ...


class Fixed(ports.Roster):
    async def owner_ids(self) -> frozenset[str]:
        return frozenset({"a"})


ROSTERS: list[ports.Roster] = [Fixed(), ReplicaSetRoster(), StatefulSetRoster("workers")]


# --- sources, stores and sinks of the library ----------------------------------------------------


def sources(key: str) -> Iterable[ports.EventSource]:
    options = EventHubOptions(
        transport=Transport.WEBSOCKET,
        http_proxy=eventproc.HttpProxy(host="proxy", port=8080),
        receive_path=ReceivePath.PUBLIC,
    )
    yield EventHubSource.from_connection_string(key, eventhub_name="orders", options=options)
    yield KafkaEventSource("broker:9092", topic="orders", options=KafkaOptions(prefetch=1))
    yield RabbitQueues("amqp://broker", prefix="q", count=4, options=QueueOptions(prefetch=1))
    yield MemoryEventSource(MemoryHub(4))
    files = BlobCaptureFiles.from_connection_string(key, "captured", since=NOW)
    yield CapturedHub(MemoryEventSource(MemoryHub(4)), files)
    copies: CaptureFiles = FolderCaptureFiles(Path("captured"))
    yield CapturedHub(MemoryEventSource(MemoryHub(4)), copies, skips_lost=True)


def publishers(key: str) -> Iterable[ports.EventPublisher]:
    yield EventHubPublisher.from_connection_string(key, eventhub_name="orders")
    yield KafkaPublisher("broker:9092", topic="orders")
    yield PartitionPublisher("amqp://broker", prefix="q", count=4)
    yield MemoryPublisher(MemoryHub(4))


async def publish(publisher: ports.EventPublisher) -> None:
    async with QueuePublisher("amqp://broker", prefix="q", count=4, key_hash=QueueHash.JUMP):
        pass
    properties: dict[str, models.PropertyValue] = {
        models.REPLAYED_FROM: 1,
        models.REPLAYED_FROM_PROPERTY: "b",
    }
    event = models.OutgoingEvent(body=b"", properties={**properties})
    await publisher.publish([event], patience=SECOND)


def stores(key: str) -> Iterable[ports.CheckpointStore]:
    account = MemoryAccount()
    records: GroupRecords = account.records(GROUP)
    print(records.checkpoint_by_partition)
    yield BlobCheckpointStore.from_connection_string(key, "checkpoints")
    yield TableCheckpointStore.from_connection_string(key, "checkpoints")
    yield PostgresCheckpointStore("postgresql://db")
    yield SqliteCheckpointStore("group.db")
    yield MemoryCheckpointStore(account)


async def note(letter: models.DeadLetter) -> None:
    print(columns.to_json({letter.error_type: letter.error_message}), columns.from_json(None))


def sinks(key: str) -> Iterable[ports.DeadLetterSink]:
    yield FunctionDeadLetterSink(note)
    yield BlobDeadLetterSink.from_connection_string(key, "letters")
    yield EventHubDeadLetterSink.from_connection_string(key, eventhub_name="letters")
    yield RabbitDeadLetterSink("amqp://broker")


def readers(key: str, source: EventHubSource) -> Iterable[ports.DeadLetterReader]:
    yield BlobDeadLetterReader.from_connection_string(key, "letters")
    yield EventHubDeadLetterReader(source)
    yield RabbitDeadLetterReader("amqp://broker", "letters")
    yield MemoryDeadLetterReader(MemoryDeadLetterSink())


async def replay_all(reader: ports.DeadLetterReader, publisher: ports.EventPublisher) -> None:
    targets: list[ReplayTarget] = [
        *(HandlerTarget(Orders), HubTarget(publisher, eventhub_name="orders"))
    ]
    letters = await matching(reader, LetterFilter(error="ValueError"))
    results: AsyncIterator[LetterResult] = replay(reader, targets[0], models.in_order(letters))
    async for result in results:
        if result.outcome is LetterOutcome.REFUSED:
            async for dropped in drop(reader, [result.stored]):
                stored: models.StoredLetter = dropped
                print(models.letter_from_json(stored.raw))
    print(models.letter_from_details({}, EVENT))


# --- operation and errors ------------------------------------------------------------------------


async def operate(store: ports.CheckpointStore) -> None:
    logs.configure("json", level="debug")
    formatters: list[logging.Formatter] = [logs.JsonLines(), logs.TextLines()]
    move = admin.CheckpointMove(partition_id="0", offset="1", sequence_number=1)
    try:
        moved: admin.CheckpointMoved = await admin.move_checkpoint(
            store, GROUP, move, token="t", expiration=SECOND
        )
    except admin.CheckpointExistsError:
        return
    await admin.pause_group(store, GROUP, reason="repair", expiration=SECOND)
    pauses: admin.Pauses = await admin.read_pauses(store, GROUP)
    pause: admin.Pause | None = pauses.group
    await admin.resume_group(store, GROUP)
    print(moved, pause, formatters, await admin.live_owners(store, GROUP, SECOND))


OF_STORES = (
    *(errors.StoreUnavailableError, errors.StoreRejectedError, errors.StoreReplacedError),
    *(errors.StoreCorruptError, errors.HubRecreatedError),
)
OF_SOURCES = (
    *(errors.SourceUnavailableError, errors.SourceRejectedError, errors.SuspectSettingError),
    *(errors.ReceiverDisplacedError, errors.PositionLostError, errors.PositionUnknownError),
)
OF_HANDLERS = (
    *(errors.DecodeError, errors.HandlerAbortedError, errors.HandlerCancelledError),
    *(errors.StateRefusedError, errors.StateTooLargeError, errors.StateUnreadableError),
    *(errors.TransactionsRefusedError, errors.CommitUnknownError, errors.OwnershipLostError),
)
OF_SINKS = (errors.DeadLetterError, errors.LetterDamagedError, errors.LetterRefusedError)


def advice(error: errors.EventProcError) -> object:
    if isinstance(error, errors.MissingExtraError | errors.DuplicateOwnerError):
        return eventproc.__version__
    if isinstance(error, errors.ConfigurationError):
        return error.setting
    if isinstance(error, errors.StoreError):
        return error.is_final
    if isinstance(error, errors.EventRefusedError):
        return error.index
    if isinstance(error, errors.SourceError | errors.RosterUnavailableError):
        return [models.KAFKA_KEY, models.KAFKA_TOMBSTONE, models.UNDECODED]
    return models.CloseReason.OWNERSHIP_LOST, isinstance(
        error, (*OF_STORES, *OF_SOURCES, *OF_HANDLERS, *OF_SINKS)
    )


# --- tests of users ------------------------------------------------------------------------------


async def check_all(store: MemoryCheckpointStore) -> None:
    clauses = await testing.check_event_source(Bench, only=testing.source_clause_names()[0])
    seen: Sequence[testing.ClauseReport] = clauses
    lose: testing.LoseAnswers | None = None
    faults = testing.StoreFaults(delay_max=SECOND)
    faulty = testing.FaultyCheckpointStore(store, random.Random(1), faults)
    await testing.check_checkpoint_store(
        lambda: faulty, lose_answers=lose, only=testing.clause_names()[0]
    )
    report: testing.PlacementReport = testing.check_placement(ByName())
    print(seen, report)


def test_handler() -> None:
    with testing.HandlerTestHarness(Orders) as harness:
        calls: Sequence[testing.HandlerCall] = harness.calls
        closings: Sequence[testing.Closing] = harness.closings
        print(calls, closings)
    fakes = (
        testing.Ledger("shop:charge", key=str),
        testing.Database("shop:connect", "create table orders (id)"),
        testing.Clock("shop:time.time"),
    )
    try:
        testing.rehearse(Orders, *fakes, promises=[testing.Promise.IN_ORDER])
    except testing.BrokenPromise as broken:
        print(broken)


def virtual() -> None:
    try:
        testing.run_virtual(asyncio.sleep(1))
    except (testing.DeadlockError, testing.LivelockError):
        testing.VirtualTimeLoop().close()
    with testing.Azurite() as azurite:
        print(azurite.connection_string)


async def emulate() -> None:
    rules = emulator.TokenRules(rights_by_identity={"me": [emulator.Right.LISTEN]})
    hubs = (*emulator.read_config_json(Path("Config.json")), *emulator.hubs_of({"orders": 4}))
    configuration = emulator.EmulatorConfiguration(
        hubs=(*hubs, emulator.HubConfiguration("more")),
        retention=emulator.Retention(events_max=10),
        tokens=rules,
    )
    captured = emulator.CaptureConfiguration(folder=Path("captured"), interval=SECOND)
    with emulator.EventHubsEmulator({"orders": 4}, capture=captured) as running:
        event: emulator.StoredEvent = running.events("orders", "0")[0]
        described = [each for each in event.annotations if isinstance(each, emulator.Described)]
        print(described)
    async with emulator.EmulatorServer(configuration) as server:
        print(server.connection_string)
    await emulator.serve(configuration)
    emulator.run(configuration)


# --- Spark ---------------------------------------------------------------------------------------


def in_spark(session: Any) -> None:
    spark.register(session)
    hub = spark.SourceRecipe(connection=spark.Secret("env:HUB"), eventhub_name="orders")
    store = spark.StoreRecipe(spec="sqlite:/group.db", network=spark.NetworkRecipe())
    fleet: spark.Fleet = spark.run_on_executors(
        session, processors=2, source=hub, store=store, handler=Orders
    )
    try:
        statistics: spark.FleetStatistics = fleet.statistics()
        members: Sequence[spark.FleetMember] = statistics.members
        print(members[0].phase is spark.Phase.SERVING)
    except spark.FleetError:
        fleet.stop()


def sink(batches: Any) -> spark.BatchSummary | str | None:
    try:
        return spark.CheckpointingSink(Orders)(batches, 1)
    except (spark.EventsLostError, spark.FencedError, spark.HandlerFailedError) as error:
        return str(error)
    except (spark.OrderLostError, spark.PublishFailedError, spark.RefusedInSparkError) as error:
        return str(error)


# --- programs of other clients -------------------------------------------------------------------


def on_event(
    context: azure_eventhub.PartitionContext, event: azure_eventhub.EventData | None
) -> None:
    context.update_checkpoint(event)


async def on_event_aio(
    context: aio.PartitionContext, event: azure_eventhub.EventData | None
) -> None:
    await context.update_checkpoint(event)


async def receive_as_azures_client(text: str) -> None:
    store = compat.BlobCheckpointStore.from_connection_string(text, "container")
    with azure_eventhub.EventHubConsumerClient.from_connection_string(
        text, "$Default", checkpoint_store=store
    ) as client:
        options: compat.ReceiveOptions = {"starting_position": {"0": "-1"}, "max_wait_time": 1.0}
        client.receive(on_event, **options)
    async with aio.EventHubConsumerClient.from_connection_string(
        text, "$Default", checkpoint_store=store
    ) as aio_client:
        await aio_client.receive(on_event_aio, starting_position="@latest")
