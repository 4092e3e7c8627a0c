"""Everything at once: processes killed and exchanged, storage away, again and again."""

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
from tests.integration.delivery.fleet import KEYS, Fleet
from tests.integration.delivery.storm import storm
from tests.integration.delivery.weather import SqliteStore

PARTITIONS = ("0", "1", "2")
STORMY, CALM = 500, 150
"""Events of each partition: while things go wrong, and while processes just come and go."""

BLOWS = 4
OUTAGE = timedelta(seconds=1)
CONTAINER = "checkpoints"


async def _checkpoints(conn_str: str, group: ConsumerGroup) -> Sequence[Checkpoint]:
    async with BlobCheckpointStore.from_connection_string(conn_str, CONTAINER) as store:
        found = [await store.read_checkpoint(group, p) for p in PARTITIONS]
    return [checkpoint for checkpoint in found if checkpoint is not None]


def _strike(fleet: Fleet, azurite, rng: random.Random, number: int) -> None:
    """A kill, a rebalance, or an outage of the store; each kind at least once."""
    busy = [name for name in fleet.lately_busy(20) if name in fleet.processes]
    name = rng.choice(busy or sorted(fleet.processes))
    match ("kill", "exchange", "outage")[number % 3]:
        case "kill":
            fleet.kill(name)
            fleet.start(name)
        case "exchange":
            fleet.start(f"p{number}")
            fleet.stop(name)
        case "outage":
            azurite.restart(after=OUTAGE)


def _published(fleet: Fleet, count: int) -> None:
    for partition_id in PARTITIONS:
        fleet.publish(count, partition_id=partition_id)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["lanes", "state"])
def test_nothing_is_lost_and_planned_changes_repeat_nothing(azurite, tmp_path, kind):
    """Order is kept for each key, the state is exact, and each hand-over in calm costs nothing."""
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

        def look() -> Sequence[Checkpoint]:
            return asyncio.run(_checkpoints(azurite.connection_string, group))

        try:
            _published(fleet, STORMY)
            for name in ("p-1", "p-2"):
                fleet.start(name)
            for number in range(BLOWS):
                fleet.until_told((number + 1) * len(PARTITIONS) * STORMY // (BLOWS + 1))
                _strike(fleet, azurite, rng, number)
            fleet.until(lambda: [c.sequence_number for c in look()] == [STORMY - 1] * 3)

            before = fleet.told_count
            _published(fleet, CALM)
            fleet.start("calm")
            fleet.until_told(before + CALM)
            fleet.stop(max(fleet.processes))
            fleet.until(lambda: len(set(fleet.places())) == len(PARTITIONS) * (STORMY + CALM))
            for name in list(fleet.processes):
                fleet.stop(name)
        finally:
            fleet.end()
        checkpoints = look()
    places = fleet.places()
    counts = Counter(places)
    count = STORMY + CALM

    assert set(counts) == {(p, n) for p in PARTITIONS for n in range(count)}
    assert {place: c for place, c in counts.items() if place[1] >= STORMY and c > 1} == {}
    for partition_id in PARTITIONS:
        for key in range(KEYS):
            newest = -1
            for number in (n for p, n in places if p == partition_id and n % KEYS == key):
                assert number <= newest + KEYS  # None is passed over, though some come again.
                newest = max(newest, number)
    if kind == "state":
        assert [json.loads(c.state or b"") for c in checkpoints] == [[count, sum(range(count))]] * 3
    print(f"{kind}: {len(places) - len(counts)} of {len(places)} came twice, in the storm alone")


@pytest.mark.timeout(400)
def test_a_short_storm_over_sqlite_does_no_harm(tmp_path):
    """Processes of the command are killed, frozen and exchanged, and their wall clocks are off."""
    told: list[str] = []
    found = storm(
        SqliteStore(tmp_path), tmp_path, seconds=12, rng=random.Random(3), say=told.append
    )

    assert found == [], told
