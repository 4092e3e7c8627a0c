"""A group with processors of Azure's SDKs, which follow rules of their own."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.models import ConsumerGroup
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import run_virtual
from tests.simulation.azure.processor import ForeignProcessor
from tests.simulation.azure.systems import SYSTEMS

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="memory", eventhub_name="hub")


class Recorder(PartitionHandler):
    """Counts events."""

    handled: Counter

    async def process_events(self, context, events):
        """Count all events."""
        self.handled.update((context.partition_id, event.sequence_number) for event in events)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_a_group_with_two_foreign_members_is_balanced_and_loses_no_event(name):
    """With one processor of ours, all partitions are owned, evenly."""
    handled: Counter = Counter()

    async def main():
        loop = asyncio.get_running_loop()

        def now():
            return BEGIN + timedelta(seconds=loop.time())

        account, hub = MemoryAccount(now=now), MemoryHub(10, clock=now)

        async def on_events(partition_id, events):
            handled.update((partition_id, event.sequence_number) for event in events)

        theirs = [
            ForeignProcessor(
                source=MemoryEventSource(hub),
                store=MemoryCheckpointStore(account),
                on_events=on_events,
                owner_id=f"theirs-{number}",
                profile=SYSTEMS[name],
                config=EventProcessorConfig(),
                rng=Random(number),
                clock=now,
            )
            for number in range(2)
        ]
        ours = EventProcessor(
            source=MemoryEventSource(hub),
            store=MemoryCheckpointStore(account),
            handler=type("Recording", (Recorder,), {"handled": handled}),
            owner_id="ours",
            config=EventProcessorConfig(uses_store_thread=False),
            rng=Random(7),
        )
        group: list[EventProcessor | ForeignProcessor] = [*theirs, ours]
        for processor in group:
            await processor.start()
        for number in range(600):
            hub.publish(b"", partition_id=str(number % 10))
            await asyncio.sleep(0.5)
        await asyncio.sleep(60)
        ownerships = account.records(GROUP).ownership_by_partition.values()
        counts = Counter(ownership.owner_id for ownership in ownerships)
        for processor in group:
            await processor.stop()
        return counts

    counts = run_virtual(main())

    assert sorted(counts.values()) == [3, 3, 4]
    assert counts.keys() == {"ours", "theirs-0", "theirs-1"}
    assert {
        p: len([x for x in handled if x[0] == p]) for p in map(str, range(10))
    } == dict.fromkeys(map(str, range(10)), 60)
