"""Votes on real groups: real storage, an emulated hub, genuine processors."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzureStore
from azure.storage.blob import ContainerClient

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import CheckpointPolicy, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc._group.autoscaler import Vote
from eventproc.emulator import EventHubsEmulator
from eventproc.ports import CheckpointStore
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.autoscaling.publisher import publishing
from tests.integration.autoscaling.votes import RULES, voting

PARTITION_COUNT = 4
EXPIRATION = timedelta(seconds=4)
RATE = 100
"""Events per second that one processor can handle."""

BATCH = 10


@pytest.fixture(name="hub")
def _hub() -> Iterator[str]:
    with EventHubsEmulator({"orders": PARTITION_COUNT}) as emulator:
        yield emulator.connection_string_for("orders")


class Pace:
    """Lets one processor handle ``RATE`` events per second, in all its partitions together."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def handle(self, count: int) -> None:
        async with self._turn:
            await asyncio.sleep(count / RATE)


class Azures:
    """A processor of Azure's client."""

    def __init__(self, hub: str, storage: str, container: str) -> None:
        self._pace = Pace()
        self._store = AzureStore.from_connection_string(storage, container)
        self._client = EventHubConsumerClient.from_connection_string(
            hub,
            "$Default",
            checkpoint_store=self._store,
            load_balancing_interval=0.5,
            partition_ownership_expiration_interval=EXPIRATION.total_seconds(),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._store, self._client:
            receiving = asyncio.create_task(
                self._client.receive_batch(
                    self._on_batch, max_batch_size=BATCH, starting_position="-1"
                )
            )
            try:
                yield
            finally:
                await self._client.close()
                await receiving

    async def _on_batch(self, context, events):
        if events:
            await self._pace.handle(len(events))
            await context.update_checkpoint(events[-1])


def processor(hub: str, store: CheckpointStore):
    """Return a processor of this library that handles ``RATE`` events per second."""
    pace = Pace()

    class Handler(PartitionHandler):
        async def process_events(self, context, events):
            await pace.handle(len(events))

    return EventProcessor(
        source=EventHubSource.from_connection_string(hub),
        store=store,
        handler=Handler,
        config=EventProcessorConfig(
            load_balancing_interval=timedelta(seconds=0.5),
            ownership_expiration=EXPIRATION,
            batch_size_max=BATCH,
            checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=0.3)),
        ),
    )


# Azure's client does not close the connection of a link that was stolen.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.long
async def test_a_group_of_azures_processors_is_scaled(hub, storage, container):
    """Out when one cannot keep up, no further when that was done, and in when nothing arrives."""
    store = BlobCheckpointStore.from_connection_string(storage, container)
    async with AsyncExitStack() as stack:
        votes = await stack.enter_async_context(voting(store, hub, expiration=EXPIRATION))
        await votes.until(lambda vote: vote.decision.replicas == 1, "one process at least")
        await stack.enter_async_context(Azures(hub, storage, container).running())
        async with publishing(hub, PARTITION_COUNT, 2 * RATE):
            await votes.until(lambda vote: vote.decision.replicas != 1, "one is not enough")
            wanted, measured = votes.replicas, votes.scaler.vote.decision.rate_of_one
            assert wanted is not None
            for _ in range(wanted - 1):
                await stack.enter_async_context(Azures(hub, storage, container).running())
            since = len(votes.given)
            await votes.until(
                lambda vote: (
                    vote.decision.reason.name == "ENOUGH" and (vote.decision.backlog or 0) < RATE
                ),
                "all of them drain the backlog and keep up",
            )
            numbers = votes.numbers(since)
        await votes.until(lambda vote: vote.decision.replicas == 1, "one is enough")

    assert 0.5 * RATE <= (measured or 0) <= 1.5 * RATE
    assert 1 < wanted <= PARTITION_COUNT
    assert wanted in numbers
    assert numbers <= {*range(2, wanted + 1)}  # Fewer, once the backlog is drained.


@pytest.mark.long
async def test_an_outage_of_the_storage_changes_nothing(hub, azurite):
    """For all of it, although events arrive and longer than the cool-down."""
    with ContainerClient.from_connection_string(azurite.connection_string, "group") as client:
        client.create_container()

    def store() -> CheckpointStore:
        return BlobCheckpointStore.from_connection_string(
            azurite.connection_string, "group", request_timeout=timedelta(seconds=1)
        )

    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(processor(hub, store()))
        votes = await stack.enter_async_context(voting(store(), hub, expiration=EXPIRATION))
        await stack.enter_async_context(publishing(hub, PARTITION_COUNT, 0.8 * RATE))
        await votes.until(
            lambda vote: vote.decision.replicas == 2 and (vote.decision.drain_per_s or 0) > 0,
            "two processors are counted and handle events",
        )
        await asyncio.to_thread(azurite.stop)
        await votes.until(lambda vote: vote.error is not None, "the outage is noticed")
        since = len(votes.given)
        await asyncio.sleep(2 * RULES.cooldown.total_seconds())
        reasons, numbers = votes.reasons(since), votes.numbers(since)
        await asyncio.to_thread(azurite.start)
        await votes.until(
            lambda vote: vote.error is None and (vote.decision.drain_per_s or 0) > 0,
            "the group goes on after the outage",
        )

    assert (reasons, numbers) == ({"NO_ANSWER"}, {2})


@pytest.mark.long
async def test_a_restart_of_all_processors_does_not_scale_out(hub, tmp_path):
    """By the formula alone the backlog of the time in between would need two processes."""

    def store() -> CheckpointStore:
        return SqliteCheckpointStore(tmp_path / "group.db")

    def keeps_up(vote: Vote) -> bool:
        return (vote.decision.backlog or 0) < RATE and (vote.decision.drain_per_s or 0) > 0

    rules = replace(RULES, rate_of_one=float(RATE), drain_target=timedelta(seconds=6))
    async with AsyncExitStack() as stack:
        votes = await stack.enter_async_context(
            voting(store(), hub, expiration=EXPIRATION, rules=rules)
        )
        await stack.enter_async_context(publishing(hub, PARTITION_COUNT, 0.4 * RATE))
        async with processor(hub, store()):
            await votes.until(keeps_up, "the group keeps up")
        await votes.until(lambda vote: (vote.decision.backlog or 0) > 8 * RATE, "no processor runs")
        async with processor(hub, store()):
            await votes.until(lambda vote: vote.decision.reason.name == "DRAINING", "it is behind")
            await votes.until(keeps_up, "the backlog is drained")

    assert votes.numbers() - {None} == {1}
