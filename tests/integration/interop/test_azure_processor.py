"""A processor of Azure's SDK and one of this library in one group, with real Azurite and
sockets."""

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

# Azure's client does not close the connection of a link that was stolen.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

PARTITION_COUNT = 5
EVENTS_PER_PARTITION = 40
INTERVAL_S = 0.5
EXPIRATION_S = 12
TIMEOUT_S = 45

Event = tuple[str, int]
Handled = Counter[Event]


@pytest.fixture(name="emulator")
def _emulator() -> Iterator[EventHubsEmulator]:
    hubs = {strategy.value: PARTITION_COUNT for strategy in LoadBalancingStrategy}
    with EventHubsEmulator(hubs) as emulator:
        yield emulator


@dataclass(frozen=True)
class Group:
    """The hub, the container and the strategy of one group."""

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


async def publish(group: Group) -> None:
    """Send some events to every partition."""
    client = EventHubProducerClient.from_connection_string(group.connection_string)
    async with client:
        for partition_id in group.emulator.partition_ids(group.hub):
            batch = await client.create_batch(partition_id=partition_id)
            for _ in range(EVENTS_PER_PARTITION):
                batch.add(EventData(b"order"))
            await client.send_batch(batch)


def published(group: Group) -> set[Event]:
    """Return every event in the hub, from the emulator."""
    return {
        (partition_id, event.sequence_number)
        for partition_id in group.emulator.partition_ids(group.hub)
        for event in group.emulator.events(group.hub, partition_id)
    }


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; fail with *what* if it does not."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():  # noqa: ASYNC110 - two programs share no event
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not within {TIMEOUT_S} s: {what}")


class Ours:
    """A processor of this library, and what it handled."""

    def __init__(self, group: Group) -> None:
        self.handled: Handled = Counter()
        handled = self.handled

        class Handler(PartitionHandler):
            async def process_events(self, context, events):
                handled.update((context.partition_id, e.sequence_number) for e in events)

        self.processor = EventProcessor(
            source=EventHubSource.from_connection_string(group.connection_string),
            store=BlobCheckpointStore.from_connection_string(group.storage, group.container),
            handler=Handler,
            config=EventProcessorConfig(
                load_balancing_strategy=group.strategy,
                load_balancing_interval=timedelta(seconds=INTERVAL_S),
                ownership_expiration=timedelta(seconds=EXPIRATION_S),
                checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=0.2)),
            ),
        )

    def count(self) -> int:
        return len(self.processor.statistics().owned)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.processor:
            yield
            self.steal_count = self.processor.statistics().steal_count

    def is_checkpointed(self) -> bool:
        """Return whether a checkpoint covers everything that was handled."""
        return all(
            pump.sequence_number == pump.checkpointed_sequence_number
            for pump in self.processor.statistics().pumps
        )


class Azures:
    """The processor of Azure's client, and what it handled."""

    def __init__(self, group: Group) -> None:
        self.handled: Handled = Counter()
        self.owned: set[str] = set()
        self._store = AzureStore.from_connection_string(group.storage, group.container)
        self._client = EventHubConsumerClient.from_connection_string(
            group.connection_string,
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


async def stays(condition: Callable[[], bool], *, cycles: int) -> bool:
    """Return whether a condition holds for some cycles."""
    for _ in range(cycles * 5):
        await asyncio.sleep(INTERVAL_S / 5)
        if not condition():
            return False
    return True


async def test_azures_processor_joins_a_group_of_this_library_and_leaves(
    emulator, storage, container
):
    """Under every strategy the two balance, and each continues at the other's checkpoints."""
    groups = [Group(emulator, storage, container, strategy) for strategy in LoadBalancingStrategy]

    async def join(group: Group) -> None:
        ours, azures = Ours(group), Azures(group)
        await check_joining(group, ours, azures, first=ours, newcomer=azures)

    await asyncio.gather(*map(join, groups))


@pytest.mark.long
async def test_a_processor_of_this_library_joins_azures_and_leaves(emulator, storage, container):
    """The new one steals one partition in each cycle, because Azure's processor hands nothing
    over."""
    group = Group(emulator, storage, container, LoadBalancingStrategy.COOPERATIVE)
    ours, azures = Ours(group), Azures(group)

    await check_joining(group, ours, azures, first=azures, newcomer=ours)

    assert ours.steal_count == PARTITION_COUNT // 2


async def check_joining(
    group: Group, ours: Ours, azures: Azures, *, first: Ours | Azures, newcomer: Ours | Azures
) -> None:
    """Check that the shares are even and stable, and that no event is lost or repeated without
    need."""
    async with first.running():
        await publish(group)
        alone = published(group)
        await until(lambda: set(first.handled) == alone, "the first handles everything while alone")
        await until(ours.is_checkpointed, "ours checkpoints everything")

        async with newcomer.running():
            await until(lambda: is_balanced(ours, azures), "the two balance")
            is_quiet = await stays(lambda: is_balanced(ours, azures), cycles=6)
            await publish(group)
            shared = published(group)
            await until(lambda: set(ours.handled + azures.handled) == shared, "both handle all")

        await until(lambda: first.count() == PARTITION_COUNT, "the first takes over again")
        await publish(group)
        whole = published(group)
        await until(lambda: set(ours.handled + azures.handled) == whole, "it handles the rest")

    both = ours.handled + azures.handled
    assert is_quiet
    assert (shared - alone) & set(ours.handled)
    assert (shared - alone) & set(azures.handled)
    assert not {event: n for event, n in both.items() if event in alone and n > 1}
    assert not {event: n for event, n in both.items() if event in whole - shared and n > 1}
