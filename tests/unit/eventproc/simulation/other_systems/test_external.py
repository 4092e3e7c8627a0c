"""Simulated processors of other systems behave as their SDKs do."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.cli.verbs.simulate import memory_account
from eventproc.models import ClaimResult, ConsumerGroup, WriteOutcome
from eventproc.simulation import Script, parse_event, play, report_of
from eventproc.simulation.other_systems.external import ForeignProcessor
from eventproc.simulation.other_systems.systems import SYSTEMS
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import run_virtual

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CONFIG = EventProcessorConfig()
GROUP = ConsumerGroup(fully_qualified_namespace="memory", eventhub_name="hub")


def reports_of(name, *events, partitions=32, processors=4):
    """Run the script with another system; return the report of each event, the start first."""
    script = Script(
        partition_count=partitions,
        processor_count=processors,
        events=[parse_event(event) for event in events],
        duration=timedelta(minutes=20),
        config=EventProcessorConfig(uses_store_thread=False),
        seed=7,
    )
    return report_of(play(script, memory_account, SYSTEMS[name]())).events


def test_greedy_python_processors_conflict_at_the_start():
    """Each of 4 claims all of 32 partitions, and 3 fail for each: 96 conflicting writes."""
    (start,) = reports_of("azure-python-greedy")

    assert (start.conflicts, start.spread_final) == (96, 0)
    assert start.moves > start.moves_minimum


def test_a_new_processor_steals_so_events_are_repeated():
    """Without a hand-over, events since the last checkpoint are handled again."""
    _, join = reports_of("azure-dotnet-greedy", "join:1")

    assert (join.moves, join.moves_minimum, join.steals_per_cycle_max) == (6, 6, 1)
    assert join.duplicates > 0
    assert join.seconds_to_balance < 2


def test_a_processor_that_leaves_releases_its_partitions():
    """The others need not wait for the expiration. It does not checkpoint."""
    _, leave = reports_of("azure-java-greedy", "leave:1")

    assert leave.seconds_to_balance < 15
    assert leave.duplicates > 0


def test_the_documented_algorithm_does_not_reach_balance():
    """18 partitions and a fourth processor stay at 5, 5, 5 and 3."""
    _, join = reports_of("event-processor-load-balancing", "join:1", partitions=18, processors=3)

    assert (join.cycles_to_balance, join.spread_final) == (None, 2)


class Recorder(PartitionHandler):
    """Counts events."""

    handled: Counter

    async def process_events(self, context, events):
        """Count all events."""
        self.handled.update((context.partition_id, event.sequence_number) for event in events)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name.startswith("azure-")])
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
                profile=SYSTEMS[name](),
                config=CONFIG,
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


class LosingAnswers(MemoryCheckpointStore):
    """Carries claims out, and reports every outcome as unknown."""

    async def claim_ownership(self, group, claims):
        """Write, and report an unknown outcome."""
        results = await super().claim_ownership(group, claims)
        return [ClaimResult(claim=r.claim, outcome=WriteOutcome.UNKNOWN) for r in results]


@pytest.mark.parametrize(
    ("name", "is_serving"), [("azure-python-greedy", True), ("azure-dotnet-greedy", False)]
)
def test_python_serves_a_partition_after_a_claim_of_unknown_outcome(name, is_serving):
    """The other SDKs do not."""

    async def main():
        hub = MemoryHub(2)
        processor = ForeignProcessor(
            source=MemoryEventSource(hub),
            store=LosingAnswers(),
            on_events=lambda *_: asyncio.sleep(0),
            owner_id="a",
            profile=SYSTEMS[name](),
            config=CONFIG,
            rng=Random(1),
            clock=lambda: datetime.now(UTC),
        )
        await processor.start()
        await asyncio.sleep(0.01)
        served = processor.served
        await processor.stop()
        return bool(served)

    assert run_virtual(main()) is is_serving


def test_a_foreign_processor_overwrites_a_newer_checkpoint():
    """With an older one of its own."""

    async def main():
        hub = MemoryHub(1)
        events = [hub.publish(b"", partition_id="0")[1] for _ in range(3)]
        async with MemoryCheckpointStore() as store:
            processor = ForeignProcessor(
                source=MemoryEventSource(hub),
                store=store,
                on_events=lambda *_: asyncio.sleep(0),
                owner_id="a",
                profile=SYSTEMS["azure-dotnet-greedy"](),
                config=CONFIG,
                rng=Random(1),
                clock=lambda: datetime.now(UTC),
            )
            found = []
            for event in (events[2], events[0]):
                await processor._checkpoint("0", event, None)
                stored = await store.read_checkpoint(GROUP, "0")
                found.append(stored and stored.sequence_number)
            return found

    assert run_virtual(main()) == [2, 0]
