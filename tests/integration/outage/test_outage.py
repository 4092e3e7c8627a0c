"""Outages of store and hub that are longer than the expiration, with real ones."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient

from checkpointstores.blob import BlobCheckpointStore
from eventproc import CheckpointPolicy, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource
from eventproc.testing._azurite import Azurite

PARTITION_COUNT = 6
PROCESSOR_COUNT = 3
EXPIRATION_S = 4.0
OUTAGE_S = 8.0
TIMEOUT_S = 40
CONTAINER = "checkpoints"


@pytest.fixture(name="emulator")
def _emulator() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"orders": PARTITION_COUNT}) as emulator:
        yield emulator


class Fleet:
    """Three processors and a publisher that continues during an outage."""

    def __init__(self, emulator: EventHubsEmulator, azurite: Azurite) -> None:
        self.handled: Counter[tuple[str, int]] = Counter()
        self._connection_string = emulator.connection_string_for("orders")
        self._emulator = emulator
        handled = self.handled

        class Handler(PartitionHandler):
            async def process_events(self, context, events):
                handled.update((context.partition_id, e.sequence_number) for e in events)
                await asyncio.sleep(0.005)

        config = EventProcessorConfig(
            load_balancing_interval=timedelta(seconds=1),
            ownership_expiration=timedelta(seconds=EXPIRATION_S),
            checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=0.5)),
        )
        self.processors = [
            EventProcessor(
                source=EventHubSource.from_connection_string(self._connection_string),
                store=BlobCheckpointStore.from_connection_string(
                    azurite.connection_string,
                    CONTAINER,
                    create_container=True,
                    request_timeout=timedelta(seconds=2),
                ),
                handler=Handler,
                config=config,
            )
            for _ in range(PROCESSOR_COUNT)
        ]

    async def publish(self, count: int) -> None:
        client = EventHubProducerClient.from_connection_string(self._connection_string)
        async with client:
            for _ in range(count):
                await client.send_batch([EventData(b"order") for _ in range(5)])

    def owners(self) -> list[tuple[str, ...]]:
        return [processor.statistics().owned for processor in self.processors]

    def is_balanced(self) -> bool:
        return all(
            len(owned) == PARTITION_COUNT // PROCESSOR_COUNT for owned in self.owners()
        ) and all(processor.statistics().is_balanced for processor in self.processors)

    def is_done(self) -> bool:
        return set(self.handled) == {
            (partition_id, event.sequence_number)
            for partition_id in self._emulator.partition_ids("orders")
            for event in self._emulator.events("orders", partition_id)
        }

    def move_count(self) -> int:
        every = [processor.statistics() for processor in self.processors]
        return sum(each.claim_count + each.steal_count + each.hand_over_count for each in every)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; fail with *what* if it does not."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():  # noqa: ASYNC110 - another program changes it
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not within {TIMEOUT_S} s: {what}")


async def test_a_store_outage_longer_than_the_expiration_loses_and_moves_nothing(emulator, azurite):
    """All processors stop delivering, and afterwards continue with the same partitions."""
    fleet = Fleet(emulator, azurite)
    async with AsyncExitStack() as stack:
        for processor in fleet.processors:
            await stack.enter_async_context(processor)
        await fleet.publish(40)
        await until(fleet.is_balanced, "balance at the start")
        owners, move_count = fleet.owners(), fleet.move_count()

        await asyncio.to_thread(azurite.stop)
        await asyncio.sleep(EXPIRATION_S)
        await fleet.publish(40)
        handled_while_fenced = sum(fleet.handled.values())
        await asyncio.sleep(OUTAGE_S - EXPIRATION_S)
        handled_at_end_of_outage = sum(fleet.handled.values())
        await asyncio.to_thread(azurite.start)

        await until(fleet.is_done, "everything is handled after the outage")
        await until(fleet.is_balanced, "balance after the outage")

        assert handled_at_end_of_outage == handled_while_fenced
        assert fleet.owners() == owners
        assert fleet.move_count() == move_count


async def test_a_hub_outage_loses_and_moves_nothing(emulator, azurite):
    """Pumps open their receivers again, and all processors keep their partitions."""
    fleet = Fleet(emulator, azurite)
    async with AsyncExitStack() as stack:
        for processor in fleet.processors:
            await stack.enter_async_context(processor)
        await fleet.publish(40)
        await until(fleet.is_balanced, "balance at the start")
        owners, move_count = fleet.owners(), fleet.move_count()

        await asyncio.to_thread(emulator.stop)
        await asyncio.sleep(OUTAGE_S)
        await asyncio.to_thread(emulator.start)
        await fleet.publish(40)

        await until(fleet.is_done, "everything is handled after the outage")
        await until(fleet.is_balanced, "balance after the outage")

        assert fleet.owners() == owners
        assert fleet.move_count() == move_count
