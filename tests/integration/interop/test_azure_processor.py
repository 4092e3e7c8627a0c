"""A genuine Azure processor and ours in one group: real clients, real Azurite, real sockets."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzureStore

from checkpointstores.blob import BlobCheckpointStore
from eventproc import (
    CheckpointPolicy,
    EventProcessor,
    EventProcessorConfig,
    LoadBalancingStrategy,
    PartitionHandler,
)
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource

PARTITION_COUNT = 7
EVENTS_PER_PARTITION = 40
INTERVAL_S = 0.5
EXPIRATION_S = 12
PATIENCE_S = 45

Event = tuple[str, int]
Handled = Counter[Event]


@pytest.fixture(name="emulator")
def _emulator() -> Iterator[EventHubsEmulator]:
    hubs = {strategy.value: PARTITION_COUNT for strategy in LoadBalancingStrategy}
    with EventHubsEmulator(hubs) as emulator:
        yield emulator


@dataclass(frozen=True)
class Scene:
    """Where one group meets."""

    emulator: EventHubsEmulator
    storage: str
    container: str
    strategy: LoadBalancingStrategy

    @property
    def hub(self) -> str:
        return self.strategy.value

    @property
    def connection_string(self) -> str:
        return self.emulator.connection_string_for(self.hub)


async def publish(scene: Scene) -> None:
    """Send some events to every partition."""
    client = EventHubProducerClient.from_connection_string(scene.connection_string)
    async with client:
        for partition_id in scene.emulator.partition_ids(scene.hub):
            batch = await client.create_batch(partition_id=partition_id)
            for _ in range(EVENTS_PER_PARTITION):
                batch.add(EventData(b"order"))
            await client.send_batch(batch)


def published(scene: Scene) -> set[Event]:
    """Return every event in the hub, as the emulator keeps it."""
    return {
        (partition_id, event.sequence_number)
        for partition_id in scene.emulator.partition_ids(scene.hub)
        for event in scene.emulator.events(scene.hub, partition_id)
    }


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is the case; say what did not happen otherwise."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():  # noqa: ASYNC110 - two programs share no event
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not within {PATIENCE_S} s: {what}")


class Ours:
    """Our processor, and what it handled."""

    def __init__(self, scene: Scene) -> None:
        self.handled: Handled = Counter()
        handled = self.handled

        class Handler(PartitionHandler):
            async def process_events(self, context, events):
                handled.update((context.partition_id, e.sequence_number) for e in events)

        self.processor = EventProcessor(
            source=EventHubSource.from_connection_string(scene.connection_string),
            store=BlobCheckpointStore.from_connection_string(scene.storage, scene.container),
            handler=Handler,
            config=EventProcessorConfig(
                load_balancing_strategy=scene.strategy,
                load_balancing_interval=timedelta(seconds=INTERVAL_S),
                ownership_expiration=timedelta(seconds=EXPIRATION_S),
                checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=0.2)),
            ),
        )

    def count(self) -> int:
        return len(self.processor.statistics().owned)

    def is_checkpointed(self) -> bool:
        """Whether everything that was handled is stored."""
        return all(
            pump.sequence_number == pump.checkpointed_sequence_number
            for pump in self.processor.statistics().pumps
        )


class Azures:
    """The genuine client's processor, and what it handled."""

    def __init__(self, scene: Scene) -> None:
        self.handled: Handled = Counter()
        self.owned: set[str] = set()
        self._store = AzureStore.from_connection_string(scene.storage, scene.container)
        self._client = EventHubConsumerClient.from_connection_string(
            scene.connection_string,
            "$Default",
            checkpoint_store=self._store,
            load_balancing_interval=INTERVAL_S,
            partition_ownership_expiration_interval=EXPIRATION_S,
        )

    def count(self) -> int:
        return len(self.owned)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._store, self._client:
            receiving = asyncio.create_task(
                self._client.receive_batch(
                    self._on_batch,
                    on_partition_initialize=self._on_initialize,
                    on_partition_close=self._on_close,
                    starting_position="-1",
                )
            )
            try:
                yield
            finally:
                await self._client.close()
                await receiving

    async def _on_batch(self, context, events):
        self.handled.update((context.partition_id, e.sequence_number) for e in events)
        if events:
            await context.update_checkpoint(events[-1])

    async def _on_initialize(self, context):
        self.owned.add(context.partition_id)

    async def _on_close(self, context, reason):
        self.owned.discard(context.partition_id)


def is_balanced(ours: Ours, azures: Azures) -> bool:
    counts = sorted((ours.count(), azures.count()))
    return counts == [PARTITION_COUNT // 2, PARTITION_COUNT - PARTITION_COUNT // 2]


async def stays(is_so: Callable[[], bool], *, cycles: int) -> bool:
    """Watch for some cycles whether something goes on being the case."""
    for _ in range(cycles * 5):
        await asyncio.sleep(INTERVAL_S / 5)
        if not is_so():
            return False
    return True


@pytest.mark.timeout(120)
async def test_azures_processor_joins_ours_and_leaves_again(emulator, storage, container):
    """Under every strategy they balance, neither starves, and each goes on from the other's."""
    scenes = [Scene(emulator, storage, container, strategy) for strategy in LoadBalancingStrategy]

    await asyncio.gather(*(azures_joins(scene) for scene in scenes))


async def azures_joins(scene: Scene) -> None:
    """They share evenly and stay so; each goes on from the other's checkpoints; nothing is lost."""
    ours, azures = Ours(scene), Azures(scene)
    async with ours.processor:
        await publish(scene)
        first = published(scene)
        await until(lambda: set(ours.handled) == first, "ours handles everything while alone")
        await until(ours.is_checkpointed, "ours checkpoints everything")

        async with azures.running():
            await until(lambda: is_balanced(ours, azures), "the two balance")
            is_quiet = await stays(lambda: is_balanced(ours, azures), cycles=6)
            await publish(scene)
            second = published(scene)
            await until(lambda: set(ours.handled + azures.handled) == second, "both handle all")

        await until(lambda: ours.count() == PARTITION_COUNT, "ours takes over again")
        await publish(scene)
        third = published(scene)
        await until(lambda: set(ours.handled + azures.handled) == third, "ours handles the rest")

    both = ours.handled + azures.handled
    assert is_quiet
    assert (second - first) & set(ours.handled)
    assert (second - first) & set(azures.handled)
    assert not {event: n for event, n in both.items() if event in first and n > 1}
    assert not {event: n for event, n in both.items() if event in third - second and n > 1}


@pytest.mark.timeout(120)
async def test_ours_joins_azures_processor_and_leaves_again(emulator, storage, container):
    """The other way round: we steal one a cycle from one that hands nothing over."""
    scene = Scene(emulator, storage, container, LoadBalancingStrategy.COOPERATIVE)
    ours, azures = Ours(scene), Azures(scene)
    async with azures.running():
        await publish(scene)
        first = published(scene)
        await until(lambda: set(azures.handled) == first, "Azure's handles everything while alone")

        async with ours.processor:
            await until(lambda: is_balanced(ours, azures), "the two balance")
            is_quiet = await stays(lambda: is_balanced(ours, azures), cycles=6)
            steal_count = ours.processor.statistics().steal_count
            await publish(scene)
            second = published(scene)
            await until(lambda: set(ours.handled + azures.handled) == second, "both handle all")

        await until(lambda: azures.count() == PARTITION_COUNT, "Azure's takes over again")
        await publish(scene)
        third = published(scene)
        await until(lambda: set(ours.handled + azures.handled) == third, "Azure's handles the rest")

    both = ours.handled + azures.handled
    assert is_quiet
    assert steal_count == PARTITION_COUNT // 2
    assert not {event: n for event, n in both.items() if event in first and n > 1}
    assert not {event: n for event, n in both.items() if event in third - second and n > 1}
