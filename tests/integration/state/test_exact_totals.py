"""The example of exact totals, with real processes that are killed repeatedly."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore

EXAMPLE = Path(__file__).parents[3] / "examples/exact_totals.py"
PACED = """
    import asyncio

    from exact_totals import ExactTotals

    class Paced(ExactTotals):
        async def process_events(self, context, events):
            for event in events:
                await super().process_events(context, [event])
                print(context.partition_id, event.sequence_number, flush=True)
                await asyncio.sleep(0.001)
"""
"""The example, slow enough to be killed in the middle of a call."""

PARTITIONS = ("0", "1")
COUNT = 450
"""Orders of each partition. Partition 0 has message ids, and every third order twice; partition 1
has none, so only the state shows which orders were counted."""

EVENTS = {"0": COUNT + COUNT // 3, "1": COUNT}
KILLS = 2
FAST = ["--interval", "500ms", "--expiration", "3s", "--checkpoint-interval", "100ms"]


@pytest.fixture(name="hub")
def _hub() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"orders": len(PARTITIONS)}) as emulator:
        yield emulator


def publish(connection_string: str) -> None:
    """Publish orders of 0, 1, 2... cents; a repeated one comes a few orders later."""
    repeating = [n for at in range(COUNT) for n in ([at] if at % 3 else [at, max(0, at - 9)])]
    with EventHubProducerClient.from_connection_string(connection_string) as producer:
        for partition_id in PARTITIONS:
            batch = producer.create_batch(partition_id=partition_id)
            for number in repeating if partition_id == "0" else range(COUNT):
                event = EventData(str(number))
                if partition_id == "0":
                    event.message_id = f"order-{number}"
                batch.add(event)
            producer.send_batch(batch)


class Fleet:
    """Processes of the command, each with a file for its output."""

    def __init__(self, folder: Path, store: str, **env: str) -> None:
        self._folder, self._store, self._env = folder, store, env
        self._process_by_owner: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, owner_id: str) -> None:
        """Start a process, or start it again."""
        command = ["run", "paced:Paced", "--eventhub", "orders", "--store", self._store, *FAST]
        with (self._folder / f"{owner_id}.txt").open("ab") as printed:
            self._process_by_owner[owner_id] = subprocess.Popen(
                [sys.executable, "-m", "eventproc", *command, "--owner-id", owner_id],
                cwd=self._folder,
                env=os.environ | self._env,
                stdout=printed,
                stderr=subprocess.DEVNULL,
            )

    def kill(self, owner_id: str) -> None:
        """Kill a process, which must be running."""
        process = self._process_by_owner[owner_id]
        assert process.poll() is None, f"{owner_id} ended by itself"
        process.kill()
        process.wait()

    def close(self) -> None:
        """Kill all processes."""
        for process in self._process_by_owner.values():
            process.kill()
            process.wait()

    def deliveries(self) -> list[str]:
        """Return the events that handlers got, in any process."""
        return [
            line
            for path in self._folder.glob("*.txt")
            for line in path.read_text().splitlines()
            if line.count(" ") == 1
        ]


def until(is_so, seconds=60):
    """Wait for a condition on other processes."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.2)


async def states(store: CheckpointStore, group: ConsumerGroup) -> dict[str, dict[str, int]]:
    """Return the state of each partition whose checkpoint is at the end."""
    async with store:
        found = [await store.read_checkpoint(group, p) for p in PARTITIONS]
    return {
        c.partition_id: json.loads(c.state or b"{}")
        for c in found
        if c is not None and c.sequence_number == EVENTS[c.partition_id] - 1
    }


@pytest.mark.parametrize("kind", [pytest.param("sqlite", marks=pytest.mark.long), "blob"])
def test_totals_are_exact_although_processes_are_killed(hub, tmp_path, storage, container, kind):
    """Each order counts once: no crash and no second publication of an order counts it again."""
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "paced.py").write_text(dedent(PACED))
    connection_string = hub.connection_string_for("orders")
    publish(connection_string)
    secrets = {
        "EVENTPROC_CONNECTION_STRING": connection_string,
        "EVENTPROC_STORAGE_CONNECTION_STRING": storage,
    }
    spec = f"sqlite:{tmp_path / 'group.db'}" if kind == "sqlite" else f"blob:{container}"
    group = ConsumerGroup(fully_qualified_namespace=f"127.0.0.1:{hub.port}", eventhub_name="orders")

    def stored_states() -> dict[str, dict[str, int]]:
        store: CheckpointStore = (
            SqliteCheckpointStore(tmp_path / "group.db")
            if kind == "sqlite"
            else BlobCheckpointStore.from_connection_string(storage, container)
        )
        return asyncio.run(states(store, group))

    fleet = Fleet(tmp_path, spec, **secrets)
    try:
        for owner_id in "ab":
            fleet.start(owner_id)
        for number in range(1, KILLS + 1):
            goal = number * sum(EVENTS.values()) // (KILLS + 2)
            until(lambda goal=goal: len(set(fleet.deliveries())) >= goal)
            owner_id = "ab"[number % 2]
            fleet.kill(owner_id)
            fleet.start(owner_id)
        until(lambda: len(stored_states()) == len(PARTITIONS))
        found = stored_states()
    finally:
        fleet.close()
    deliveries = fleet.deliveries()
    exact = {"count": COUNT, "cents": sum(range(COUNT))}

    assert {p: {k: found[p][k] for k in exact} for p in found} == dict.fromkeys(PARTITIONS, exact)
    assert len(set(deliveries)) == sum(EVENTS.values())
    assert len(deliveries) > len(set(deliveries)), (
        "no event was delivered twice, so the kills had no effect"
    )
