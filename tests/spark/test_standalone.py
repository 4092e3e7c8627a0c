"""The sink on a cluster of real processes, which are killed and frozen; blob storage and hub real.

A query takes 100 events of each of two partitions in a batch, so there are two batches; things go
wrong in the second one.
"""

import json
import os
import signal
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from checkpointstores.blob import BlobCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.models import Checkpoint, ConsumerGroup
from tests.spark.conftest import COUNT, HERE, HUB, Place, expected, publish
from tests.spark.sink_handlers import CONTAINER, FOLDER, STORAGE
from tests.spark.standalone import Driver, Standalone, executor_above

GROUP = ConsumerGroup(fully_qualified_namespace="127.0.0.1", eventhub_name=HUB)
SUM = sum(range(COUNT))
FIRST = [*expected("0", 0, 100), *expected("1", 0, 100)]
SECOND = [*expected("0", 100, COUNT), *expected("1", 100, COUNT)]
"""What the batches have."""


@dataclass(frozen=True)
class World:
    """A query that programs run, one after another or beside each other."""

    cluster: Standalone
    source: dict[str, str]
    folder: Path
    storage: str
    container: str

    def driver(self, **settings: str) -> AbstractContextManager[Driver]:
        """Start the program."""
        sink = {
            "handler": "sink_handlers:Orders",
            "checkpointStore": "sink_handlers:blob_store",
            "fullyQualifiedNamespace": GROUP.fully_qualified_namespace,
            "eventHubName": HUB,
        }
        return self.cluster.driver(
            str(HERE / "sink_program.py"),
            json.dumps(self.source),
            json.dumps(sink),
            str(self.folder / "offsets"),
            env={
                "PYTHONPATH": str(HERE),
                FOLDER: str(self.folder),
                STORAGE: self.storage,
                CONTAINER: self.container,
            },
            settings={name.replace("_", "."): value for name, value in settings.items()},
        )

    def arm(self, name: str) -> Path:
        """Let something happen once; return the file that tells that it does."""
        (self.folder / name).touch()
        return self.folder / "stalled"

    def handled(self, *, is_replay: bool) -> list[Place]:
        """Return what handlers were given, in whole: attempts that died count, too."""
        lines = self._lines("ledger")
        return sorted({(x["partition"], x["number"]) for x in lines if x["is_replay"] == is_replay})

    def commits(self) -> list[Place]:
        """Return what drivers have committed; no write, of whomever, ever went back."""
        writes = self._lines("writes")
        for partition_id in ("0", "1"):
            numbers = [x["number"] for x in writes if x["partition"] == partition_id]
            assert numbers == sorted(numbers)
        return sorted((x["partition"], x["number"]) for x in writes if x["is_commit"])

    def _lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    async def checkpoints(self) -> dict[str, Checkpoint]:
        store = BlobCheckpointStore.from_connection_string(self.storage, self.container)
        async with store:
            listed = await store.list_checkpoints(GROUP)
            read = [await store.read_checkpoint(GROUP, c.partition_id) for c in listed]
        return {checkpoint.partition_id: checkpoint for checkpoint in read if checkpoint}


@pytest.fixture(name="world")
def _world(
    cluster: Standalone, emulator: EventHubsEmulator, tmp_path: Path, storage: str, container: str
) -> World:
    source = {
        "connectionString": emulator.connection_string_for(HUB),
        "startingPosition": "earliest",
        "maxEventsPerTrigger": "200",
    }
    return World(cluster, source, tmp_path, storage, container)


def where(checkpoints: dict[str, Checkpoint]) -> dict[str, tuple[int | None, bytes | None, int]]:
    """Return position, state, and whether what follows was handed over."""
    return {p: (c.sequence_number, c.state, c.delivery_count) for p, c in checkpoints.items()}


SPECULATION = {
    "spark_speculation": "true",
    "spark_speculation_interval": "50ms",
    "spark_speculation_minTaskRuntime": "50ms",
    "spark_speculation_multiplier": "1.1",
    "spark_speculation_quantile": "0.5",
}
COMMITS = [("0", 99), ("0", COUNT - 1), ("1", 99), ("1", COUNT - 1)]
DONE = dict.fromkeys(("0", "1"), (COUNT - 1, b"%d" % SUM, 0))


async def test_an_executor_and_then_a_driver_are_killed_in_a_batch(world):
    """The task is done by another executor; the batch comes again, as a replay, from a new driver.

    The driver dies between write and commit. The state counts each event once.
    """
    world.arm("stall-in-handler")
    stalled = world.arm("stall-in-commit")
    with world.driver() as driver:
        driver.until(stalled)
        os.kill(executor_above(int(stalled.read_text())), signal.SIGKILL)
        stalled.unlink()
        driver.until(stalled)
        by_attempts = world.handled(is_replay=True)
    before = await world.checkpoints()
    with world.driver() as driver:
        assert driver.wait() == 0, driver.text

    assert by_attempts in (expected("0", 100, COUNT), expected("1", 100, COUNT))
    assert {(c.sequence_number, c.delivery_count) for c in before.values()} == {(99, 1)}
    assert where(await world.checkpoints()) == DONE
    assert world.commits() == COMMITS
    assert {*world.handled(is_replay=False), *by_attempts} == {*FIRST, *SECOND}
    assert world.handled(is_replay=True) == SECOND


async def test_a_driver_that_was_frozen_and_thaws_is_fenced(world, emulator):
    """Another one has taken over and gone on: the thawed one writes nothing, and says why.

    In the other one a slow attempt is overtaken by a speculative one: that is one commit, too.
    """
    stalled = world.arm("stall-in-commit")
    with world.driver() as frozen:
        frozen.until(stalled)
        frozen.freeze()
        publish(emulator, "0", *[b"1"] * 30)
        world.arm("stall-in-handler")
        with world.driver(**SPECULATION) as successor:
            assert successor.wait() == 0, successor.text
        before = await world.checkpoints()
        stalled.unlink()
        frozen.thaw()
        assert frozen.wait() != 0

    assert not (world.folder / "stall-in-handler").exists(), "an attempt stands still for ever"
    assert "FencedError: the checkpoint of partition" in frozen.text
    assert "is not written over it" in frozen.text
    assert where(before) == {**DONE, "0": (COUNT + 29, b"%d" % (SUM + 30), 0)}
    assert await world.checkpoints() == before
    assert world.commits() == sorted([*COMMITS, ("0", COUNT + 29)])
    assert world.handled(is_replay=True) == SECOND
