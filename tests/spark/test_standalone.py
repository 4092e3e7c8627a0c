"""The sink on a cluster of real processes, which are killed and frozen; hub and storage are real.

A query reads 100 events of each of two partitions in a batch, so there are two batches. Faults are
injected in the second.
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
from eventproc.models import IN_BATCH, NOT_BEGUN, Checkpoint, ConsumerGroup, Isolation
from tests.spark.conftest import COUNT, HERE, HUB, Place, expected, publish
from tests.spark.sink_handlers import CONTAINER, FOLDER, STORAGE
from tests.spark.standalone import Driver, Standalone, executor_above

GROUP = ConsumerGroup(fully_qualified_namespace="127.0.0.1", eventhub_name=HUB)
SUM = sum(range(COUNT))
FIRST = [*expected("0", 0, 100), *expected("1", 0, 100)]
SECOND = [*expected("0", 100, COUNT), *expected("1", 100, COUNT)]
"""The events of the two batches."""


@dataclass(frozen=True)
class Setup:
    """A query that programs run, one after another or at the same time."""

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
        """Inject a fault once; return the file that exists while it blocks."""
        (self.folder / name).touch()
        return self.folder / "stalled"

    def handled(self, *, is_replay: bool) -> list[Place]:
        """Return the events that handlers got, in any attempt, each once."""
        lines = self._lines("ledger")
        return sorted({(x["partition"], x["number"]) for x in lines if x["is_replay"] == is_replay})

    def commits(self) -> list[Place]:
        """Return the committed positions; assert that no write of any driver moved one back."""
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


@pytest.fixture(name="setup")
def _setup(
    cluster: Standalone, emulator: EventHubsEmulator, tmp_path: Path, storage: str, container: str
) -> Setup:
    source = {
        "connectionString": emulator.connection_string_for(HUB),
        "startingPosition": "earliest",
        "maxEventsPerTrigger": "200",
    }
    return Setup(cluster, source, tmp_path, storage, container)


def where(
    checkpoints: dict[str, Checkpoint],
) -> dict[str, tuple[int | None, bytes | None, Isolation]]:
    """Return position, state and isolation of each partition."""
    return {p: (c.sequence_number, c.state, c.isolation) for p, c in checkpoints.items()}


SPECULATION = {
    "spark_speculation": "true",
    "spark_speculation_interval": "50ms",
    "spark_speculation_minTaskRuntime": "50ms",
    "spark_speculation_multiplier": "1.1",
    "spark_speculation_quantile": "0.5",
}
COMMITS = [("0", 99), ("0", COUNT - 1), ("1", 99), ("1", COUNT - 1)]
DONE = dict.fromkeys(("0", "1"), (COUNT - 1, b"%d" % SUM, NOT_BEGUN))


async def test_a_batch_survives_the_kill_of_an_executor_and_of_its_driver(setup):
    """Another executor does the task, and a new driver gets the batch again as a replay.

    The driver is killed between write and commit. The state counts each event once.
    """
    setup.arm("stall-in-handler")
    stalled = setup.arm("stall-in-commit")
    with setup.driver() as driver:
        driver.until(stalled)
        os.kill(executor_above(int(stalled.read_text())), signal.SIGKILL)
        stalled.unlink()
        driver.until(stalled)
        by_attempts = setup.handled(is_replay=True)
    before = await setup.checkpoints()
    with setup.driver() as driver:
        assert driver.wait() == 0, driver.text

    assert by_attempts in (expected("0", 100, COUNT), expected("1", 100, COUNT))
    assert {(c.sequence_number, c.isolation) for c in before.values()} == {(99, IN_BATCH)}
    assert where(await setup.checkpoints()) == DONE
    assert setup.commits() == COMMITS
    assert {*setup.handled(is_replay=False), *by_attempts} == {*FIRST, *SECOND}
    assert setup.handled(is_replay=True) == SECOND


async def test_a_driver_that_was_frozen_is_fenced_by_its_successor(setup, emulator):
    """The first driver is frozen before its commit; once thawed, it fails and writes nothing.

    In the successor a slow attempt is overtaken by a speculative one, with one commit in all.
    """
    stalled = setup.arm("stall-in-commit")
    with setup.driver() as frozen:
        frozen.until(stalled)
        frozen.freeze()
        publish(emulator, "0", *[b"1"] * 30)
        setup.arm("stall-in-handler")
        with setup.driver(**SPECULATION) as successor:
            assert successor.wait() == 0, successor.text
        before = await setup.checkpoints()
        stalled.unlink()
        frozen.thaw()
        assert frozen.wait() != 0

    assert not (setup.folder / "stall-in-handler").exists(), "no attempt was slow"
    assert "FencedError: the checkpoint of partition" in frozen.text
    assert "is not written over it" in frozen.text
    assert where(before) == {**DONE, "0": (COUNT + 29, b"%d" % (SUM + 30), NOT_BEGUN)}
    assert await setup.checkpoints() == before
    assert setup.commits() == sorted([*COMMITS, ("0", COUNT + 29)])
    assert setup.handled(is_replay=True) == SECOND
