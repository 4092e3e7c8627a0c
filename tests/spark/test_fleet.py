"""Processors on executors, with a real Spark, real worker processes, a real hub and store."""

import asyncio
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    ConfigurationError,
    EventProcessor,
    EventProcessorConfig,
    LoadBalancingStrategy,
)
from eventproc.admin import pause_group, resume_group
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from eventproc.sources.eventhubs import EventHubSource
from spark_integration import (
    Fleet,
    FleetError,
    FleetMember,
    FleetStatistics,
    Phase,
    Secret,
    SourceRecipe,
    StoreRecipe,
    run_on_executors,
)
from tests.spark import fleet_handlers
from tests.spark.conftest import COUNT, HUB, PARTITIONS, Place, expected

CONFIG = EventProcessorConfig(
    load_balancing_interval=timedelta(seconds=1),
    ownership_expiration=timedelta(seconds=15),
    batch_size_max=20,
)
TIMEOUT_S = 240.0


@pytest.fixture(name="journal")
def _journal(shared_folder, monkeypatch):
    """Yield the file in which handlers record what they did; delete it at the end."""
    monkeypatch.setenv(fleet_handlers.FOLDER, str(shared_folder))  # for processors in this process
    yield fleet_handlers.journal()
    fleet_handlers.journal().unlink(missing_ok=True)


@pytest.fixture(name="recipes")
def _recipes(emulator, tmp_path):
    """Return the arguments of a fleet."""
    return {
        "source": SourceRecipe(connection=Secret(emulator.connection_string_for(HUB))),
        "store": StoreRecipe(spec=f"sqlite:{tmp_path}/group.db"),
        "handler": "fleet_handlers:Journal",
        "config": CONFIG,
    }


def until(is_so: Callable[[], object], check: Callable[[], object] = bool) -> None:
    """Wait until a condition holds; ``check`` raises if it cannot hold any more."""
    give_up_at = time.monotonic() + TIMEOUT_S
    while not is_so():
        check()
        assert time.monotonic() < give_up_at, "the condition did not hold in time"
        time.sleep(0.05)


def handled(journal: Path) -> list[Place]:
    """Return the places of the handled events, sorted."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return sorted((partition, int(number)) for _, partition, number in map(str.split, lines))


def process_id(member: FleetMember) -> int:
    """Return the id of the worker process."""
    assert member.process_id is not None
    return member.process_id


def owned(member: FleetMember) -> tuple[str, ...]:
    """Return the partitions that the member owns."""
    assert member.statistics is not None
    return member.statistics.owned


def owners(journal: Path) -> set[str]:
    """Return the owner ids that have handled events."""
    return {line.split()[0] for line in journal.read_text().splitlines()}


def publish_to_all(emulator: EventHubsEmulator, count: int) -> None:
    """Publish *count* events to each partition."""
    hub = emulator.connection_string_for(HUB)
    with EventHubProducerClient.from_connection_string(hub) as producer:
        for partition_id in map(str, range(PARTITIONS)):
            producer.send_batch([EventData(b"more")] * count, partition_id=partition_id)


FIRST = [*expected("0", 0, COUNT), *expected("1", 0, COUNT)]


def more(begin: int, end: int) -> list[Place]:
    """Return the places of events that were published later, to all partitions alike."""
    later = [
        (str(p), n + (COUNT if p < 2 else 0)) for p in range(PARTITIONS) for n in range(begin, end)
    ]
    return sorted(later)


async def test_a_fleet_shares_partitions_with_a_processor_outside(
    spark, emulator, recipes, journal
):
    """The fleet joins and leaves a group; no event is missed, and none is handled twice."""

    def run_fleet() -> None:
        with run_on_executors(spark, processors=2, name="guests", **recipes) as fleet:
            until(lambda: fleet.statistics().owned_count == 2)
            publish_to_all(emulator, 5)
            until(lambda: len(handled(journal)) >= 2 * COUNT + 15)
            assert fleet.statistics().live_count == 2
        ended = fleet.statistics()
        assert [member.phase for member in ended.members] == [Phase.ENDED] * 2
        assert ended.handled_count >= 10, "the counts of processors survive their end"
        publish_to_all(emulator, 2)
        until(lambda: len(handled(journal)) >= 2 * COUNT + 21)

    outside = EventProcessor(
        source=EventHubSource.from_connection_string(emulator.connection_string_for(HUB)),
        store=SqliteCheckpointStore(Path(recipes["store"].spec.removeprefix("sqlite:"))),
        handler=fleet_handlers.Journal,
        owner_id="outside",
        config=CONFIG,
    )
    async with outside:
        await asyncio.to_thread(run_fleet)
        assert len(outside.statistics().owned) == PARTITIONS

    assert handled(journal) == sorted([*FIRST, *more(0, 7)])
    assert owners(journal) == {"outside", "guests-0", "guests-1"}


@pytest.mark.long
def test_an_operators_pause_outlasts_the_fleet_that_it_was_given_to(
    spark, emulator, recipes, journal
):
    """The workers follow it, and those of the next fleet have it from their start."""
    group = ConsumerGroup(fully_qualified_namespace=f"127.0.0.1:{emulator.port}", eventhub_name=HUB)
    running = {"processors": 2, "name": "paused", **recipes}

    def paused(fleet: Fleet) -> list[str]:
        pumps = [p for m in fleet.statistics().members if m.statistics for p in m.statistics.pumps]
        return [p.partition_id for p in pumps if p.pause_reason == "a test"]

    def change(what: Callable[[SqliteCheckpointStore], Coroutine[Any, Any, object]]) -> None:
        async def work() -> None:
            path = recipes["store"].spec.removeprefix("sqlite:")
            async with SqliteCheckpointStore(path) as store:
                await what(store)

        asyncio.run(work())

    with run_on_executors(spark, **running) as fleet:
        until(lambda: len(handled(journal)) >= 2 * COUNT)
        change(
            lambda store: pause_group(
                store, group, ["0"], reason="a test", expiration=CONFIG.ownership_expiration
            )
        )
        until(lambda: paused(fleet) == ["0"])
        publish_to_all(emulator, 2)
        until(lambda: len(handled(journal)) >= 2 * COUNT + 4)
    with run_on_executors(spark, **running) as fleet:
        until(lambda: fleet.statistics().owned_count == PARTITIONS)
        publish_to_all(emulator, 2)
        until(lambda: len(handled(journal)) >= 2 * COUNT + 8)
        until(lambda: paused(fleet) == ["0"])
        during = handled(journal)
        change(lambda store: resume_group(store, group))
        until(lambda: len(handled(journal)) >= 2 * COUNT + 12)

    assert during == sorted([*FIRST, *(place for place in more(0, 4) if place[0] != "0")])
    assert handled(journal) == sorted([*FIRST, *more(0, 4)])


def test_a_worker_that_is_killed_or_signalled_is_restarted(spark, emulator, recipes, journal):
    """A killed worker is restarted with its partitions; one that gets SIGHUP checkpoints before it
    ends."""
    shown: list[FleetStatistics] = []
    with run_on_executors(
        spark,
        processors=2,
        name="mortals",
        progress_interval=timedelta(seconds=0.5),
        on_progress=shown.append,
        **recipes,
    ) as fleet:

        def is_whole() -> bool:
            now = fleet.statistics()
            return now.live_count == 2 and now.owned_count == PARTITIONS

        until(lambda: len(handled(journal)) >= 2 * COUNT)
        until(is_whole)
        victim, _ = before = fleet.statistics().members
        os.kill(process_id(victim), signal.SIGKILL)
        until(lambda: fleet.statistics().restart_count == 1)
        until(is_whole)
        after = fleet.statistics().members
        assert list(map(owned, after)) == list(map(owned, before)), (
            "it has the same partitions again"
        )
        assert after[0].process_id != victim.process_id

        signalled = owned(after[1])
        os.kill(process_id(after[1]), signal.SIGHUP)
        until(lambda: fleet.statistics().restart_count == 2)
        until(is_whole)
        publish_to_all(emulator, 5)
        until(lambda: set(handled(journal)) >= set(more(0, 5)))

    assert set(handled(journal)) == {*FIRST, *more(0, 5)}
    counts = Counter(place for place in handled(journal) if place[0] in signalled)
    assert set(counts.values()) == {1}, "a worker that got a signal left nothing to repeat"
    assert any("mortals-1: it had to stop: SIGHUP" in text for text in shown[-1].warnings)
    assert re.fullmatch(
        r"fleet mortals: \d of 2 processors live, \d partitions, \d+ events handled, "
        r"lag (\d+|unknown), 2 restarts",
        str(shown[-1]),
    )


def test_stop_kills_a_processor_that_hangs(spark, recipes, journal):
    """If a handler never returns, ``stop`` kills its process and raises ``FleetError``."""
    config = EventProcessorConfig(shutdown_timeout=timedelta(hours=1))
    given = {**recipes, "handler": "fleet_handlers:Stuck", "config": config}
    fleet = run_on_executors(spark, processors=1, **given)
    until(journal.exists)
    (member,) = fleet.statistics().members

    with pytest.raises(
        FleetError, match=r"1 of 1 processors of fleet spark-.* did not stop in time"
    ):
        fleet.stop(timedelta(seconds=1))

    assert not fleet.statistics().live_count
    with pytest.raises(ProcessLookupError):
        until(lambda: os.kill(process_id(member), 0))


def test_a_handler_that_executors_cannot_import_is_refused(spark, recipes):
    """``run_on_executors`` raises at once, with the error of the first task."""
    with pytest.raises(ConfigurationError, match="'nowhere' cannot be imported here"):
        run_on_executors(spark, processors=2, **{**recipes, "handler": "nowhere:Handler"})


def test_invalid_settings_of_a_fleet_are_refused(spark, recipes):
    """Settings that a processor would refuse, and no processors at all, raise
    ``ConfigurationError``."""
    config = EventProcessorConfig(
        load_balancing_strategy=LoadBalancingStrategy.GREEDY, static_membership=True
    )
    with pytest.raises(ConfigurationError, match="needs a name that stays"):
        run_on_executors(spark, processors=1, **{**recipes, "config": config})
    with pytest.raises(ConfigurationError, match="processors is 0"):
        run_on_executors(spark, processors=0, **recipes)


def test_more_processors_than_cores_are_refused(spark, recipes):
    """Processors without a core would wait for ever."""
    with pytest.raises(
        ConfigurationError, match=r"processors is 3, and local\[2,4\] has room for 2"
    ):
        run_on_executors(spark, processors=3, **recipes)
