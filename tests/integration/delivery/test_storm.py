"""Several faults together: processes are killed and replaced, and the store has outages."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest
from azure.storage.blob import ContainerClient

from checkpointstores.blob import BlobCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.models import Checkpoint, ConsumerGroup
from tests.integration.delivery.environment import PostgresStore, SqliteStore, TablesStore
from tests.integration.delivery.fleet import KEYS, Fleet
from tests.integration.delivery.hub import EmulatorHub, KafkaHub
from tests.integration.delivery.storm import storm

PARTITIONS = ("0", "1", "2")
WITH_FAULTS, CALM = 500, 150
"""Events of each partition: with faults, and while processes only start and stop."""

FAULTS = 4
OUTAGE = timedelta(seconds=1)
CONTAINER = "checkpoints"


async def _checkpoints(conn_str: str, group: ConsumerGroup) -> Sequence[Checkpoint]:
    async with BlobCheckpointStore.from_connection_string(conn_str, CONTAINER) as store:
        found = [await store.read_checkpoint(group, p) for p in PARTITIONS]
    return [checkpoint for checkpoint in found if checkpoint is not None]


def _inject(fleet: Fleet, azurite, rng: random.Random, number: int) -> None:
    """Kill or replace a process, or interrupt the store; each of these at least once."""
    active = [name for name in fleet.recently_active(20) if name in fleet.processes]
    name = rng.choice(active or sorted(fleet.processes))
    match ("kill", "replace", "outage")[number % 3]:
        case "kill":
            fleet.kill(name)
            fleet.start(name)
        case "replace":
            fleet.start(f"p{number}")
            fleet.stop(name)
        case "outage":
            azurite.restart(after=OUTAGE)


def _publish(fleet: Fleet, count: int) -> None:
    for partition_id in PARTITIONS:
        fleet.publish(count, partition_id=partition_id)


@pytest.mark.parametrize("kind", ["lanes", "state"])
def test_faults_lose_no_event_and_planned_changes_repeat_none(azurite, tmp_path, kind):
    """Order is kept for each key, the state is exact, and hand-overs without faults repeat
    nothing."""
    rng = random.Random(11)
    settings = {"key_concurrency": 4} if kind == "lanes" else {"counts": True}
    with ContainerClient.from_connection_string(azurite.connection_string, CONTAINER) as client:
        client.create_container()
    store = f"{CONTAINER} {azurite.connection_string}"
    with EventHubsEmulator({"hub": len(PARTITIONS)}) as emulator:
        fleet = Fleet(emulator, tmp_path, store, pace_s=0.004, **settings)
        group = ConsumerGroup(
            fully_qualified_namespace=f"127.0.0.1:{emulator.port}", eventhub_name="hub"
        )

        def checkpoints_now() -> Sequence[Checkpoint]:
            return asyncio.run(_checkpoints(azurite.connection_string, group))

        try:
            _publish(fleet, WITH_FAULTS)
            for name in ("p-1", "p-2"):
                fleet.start(name)
            for number in range(FAULTS):
                fleet.until_lines((number + 1) * len(PARTITIONS) * WITH_FAULTS // (FAULTS + 1))
                _inject(fleet, azurite, rng, number)
            fleet.until(
                lambda: [c.sequence_number for c in checkpoints_now()] == [WITH_FAULTS - 1] * 3
            )

            before = fleet.line_count
            _publish(fleet, CALM)
            fleet.start("calm")
            fleet.until_lines(before + CALM)
            fleet.stop(max(fleet.processes))
            fleet.until(lambda: len(set(fleet.places())) == len(PARTITIONS) * (WITH_FAULTS + CALM))
            for name in list(fleet.processes):
                fleet.stop(name)
        finally:
            fleet.end()
        checkpoints = checkpoints_now()
    places = fleet.places()
    counts = Counter(places)
    count = WITH_FAULTS + CALM

    assert set(counts) == {(p, n) for p in PARTITIONS for n in range(count)}
    assert {place: c for place, c in counts.items() if place[1] >= WITH_FAULTS and c > 1} == {}
    for partition_id in PARTITIONS:
        for key in range(KEYS):
            newest = -1
            for number in (n for p, n in places if p == partition_id and n % KEYS == key):
                assert number <= newest + KEYS  # No event is skipped; some are repeated.
                newest = max(newest, number)
    if kind == "state":
        assert [json.loads(c.state or b"") for c in checkpoints] == [[count, sum(range(count))]] * 3
    print(
        f"{kind}: {len(places) - len(counts)} of {len(places)} were repeats, all during the faults"
    )


def test_a_short_storm_on_sqlite_has_no_violations(tmp_path):
    """Processes of the command are killed, frozen and replaced, and their wall clocks are off."""
    progress: list[str] = []
    found = storm(
        EmulatorHub(),
        SqliteStore(tmp_path),
        tmp_path,
        seconds=12,
        rng=random.Random(3),
        say=progress.append,
    )

    assert found == [], progress


@pytest.mark.long
@pytest.mark.parametrize("kind", [PostgresStore, TablesStore])
def test_a_short_storm_on_a_server_has_no_violations(tmp_path, kind):
    """The same, while the server is frozen and stopped or killed."""
    progress: list[str] = []
    found = storm(
        EmulatorHub(),
        kind(tmp_path),
        tmp_path,
        seconds=30,
        rng=random.Random(3),
        say=progress.append,
    )

    assert found == [], progress


@pytest.mark.timeout(600)
def test_two_minutes_of_storm_on_kafka_have_no_violations(tmp_path):
    """The broker is frozen, or killed and started again, and the store is locked."""
    progress: list[str] = []
    found = storm(
        KafkaHub(),
        SqliteStore(tmp_path),
        tmp_path,
        seconds=120,
        rng=random.Random(3),
        say=progress.append,
    )

    assert found == [], progress
