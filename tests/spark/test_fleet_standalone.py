"""A fleet on a cluster of real processes, and a processor outside of it; hub and storage are real.

Dynamic allocation and speculation are on: neither may affect a task that runs for ever.
"""

import asyncio
import json
import os
import signal
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from checkpointstores.blob import BlobCheckpointStore
from eventproc import EventProcessor
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from eventproc.sources.eventhubs import EventHubSource
from tests.spark import fleet_handlers, fleet_program
from tests.spark.conftest import HERE, HUB, PARTITIONS
from tests.spark.standalone import Driver, Standalone, executor_above
from tests.spark.test_fleet import FIRST, handled, more, publish_to_all, until

SETTINGS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
}


@dataclass(frozen=True)
class Setup:
    """The group: the fleet of the program, and a processor in this process."""

    cluster: Standalone
    emulator: EventHubsEmulator
    folder: Path
    storage: str
    container: str

    def driver(self) -> AbstractContextManager[Driver]:
        """Start the program."""
        env = {
            "PYTHONPATH": str(HERE),
            fleet_handlers.FOLDER: str(self.folder),
            fleet_program.HUB: self.emulator.connection_string_for(HUB),
            fleet_program.STORAGE: self.storage,
            fleet_program.CONTAINER: self.container,
        }
        program = str(HERE / "fleet_program.py")
        return self.cluster.driver(program, str(self.folder), env=env, settings=SETTINGS)

    def outside(self) -> EventProcessor:
        """Return the processor in this process."""
        hub = self.emulator.connection_string_for(HUB)
        return EventProcessor(
            source=EventHubSource.from_connection_string(hub),
            store=self.store(),
            handler=fleet_handlers.Journal,
            owner_id="outside",
            config=fleet_program.CONFIG,
        )

    def store(self) -> BlobCheckpointStore:
        return BlobCheckpointStore.from_connection_string(self.storage, self.container)

    def checkpoints(self) -> dict[str, int]:
        """Return the checkpointed sequence number of each partition."""

        async def read() -> dict[str, int]:
            source = EventHubSource.from_connection_string(self.emulator.connection_string_for(HUB))
            group = ConsumerGroup(
                fully_qualified_namespace=source.fully_qualified_namespace,
                eventhub_name=source.eventhub_name,
                name="$Default",
            )
            async with self.store() as store:
                listed = await store.list_checkpoints(group)
            return {c.partition_id: c.sequence_number or 0 for c in listed}

        return asyncio.run(read())

    def members(self) -> list[dict[str, Any]]:
        """Return the status of the fleet's members."""
        status = self.folder / "status"
        found: list[dict[str, Any]] = json.loads(status.read_text()) if status.exists() else []
        return found

    def is_whole(self, restarts: int) -> bool:
        """Return whether both members serve a partition, after that many restarts in all."""
        now = self.members()
        is_shared = all(member["is_live"] and len(member["owned"]) == 1 for member in now)
        return bool(now) and is_shared and sum(member["restarts"] for member in now) == restarts


def is_running(process_id: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(name="setup")
def _setup(
    cluster: Standalone,
    emulator: EventHubsEmulator,
    tmp_path: Path,
    storage: str,
    container: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Setup:
    monkeypatch.setenv(fleet_handlers.FOLDER, str(tmp_path))  # for the processor in this process
    return Setup(cluster, emulator, tmp_path, storage, container)


async def test_killing_a_worker_or_an_executor_repeats_only_events_without_checkpoint(setup):
    """Spark restarts both, and they own the same partitions again; a stop repeats nothing."""
    before: dict[str, int] = {}
    journal = setup.folder / fleet_handlers.journal().name

    def run_fleet() -> None:
        with setup.driver() as driver:
            until(lambda: setup.is_whole(0), driver.check)
            victim, other = setup.members()
            publish_to_all(setup.emulator, 60)
            until(lambda: any(place[0] == victim["owned"][0] for place in handled(journal)))
            before.update(setup.checkpoints())
            os.kill(victim["process"], signal.SIGKILL)
            until(lambda: setup.is_whole(1), driver.check)
            assert setup.members()[0]["owned"] == victim["owned"]
            assert setup.members()[1]["process"] == other["process"], (
                "the other process was not restarted"
            )

            os.kill(executor_above(other["process"]), signal.SIGKILL)
            until(lambda: setup.is_whole(2), driver.check)
            publish_to_all(setup.emulator, 10)
            until(lambda: set(handled(journal)) >= set(more(60, 70)))
            (setup.folder / "stop").touch()
            assert driver.wait() == 0, driver.text
        publish_to_all(setup.emulator, 5)
        until(lambda: set(handled(journal)) >= set(more(70, 75)))
        counts = Counter(handled(journal))
        repeated = [place for place, count in counts.items() if count > 1]
        (lost,) = victim["owned"]

        assert sorted(counts) == sorted([*FIRST, *more(0, 75)])
        assert {partition for partition, _ in repeated} <= {lost}
        assert all(number > before.get(lost, -1) for _, number in repeated)

    async with setup.outside() as outside:
        await asyncio.to_thread(run_fleet)
        assert len(outside.statistics().owned) == PARTITIONS


async def test_the_workers_of_a_killed_driver_release_their_partitions_and_end(setup):
    """Executors end with their driver; the workers notice it and release what they own."""
    journal = setup.folder / fleet_handlers.journal().name

    def run_fleet() -> None:
        with setup.driver() as driver:
            until(lambda: setup.is_whole(0), driver.check)
            workers = [member["process"] for member in setup.members()]
            driver.kill()
        until(lambda: not any(map(is_running, workers)))
        publish_to_all(setup.emulator, 5)
        until(lambda: len(handled(journal)) >= len(FIRST) + 5 * PARTITIONS)

    async with setup.outside() as outside:
        await asyncio.to_thread(run_fleet)
        assert len(outside.statistics().owned) == PARTITIONS

    assert handled(journal) == sorted([*FIRST, *more(0, 5)])
