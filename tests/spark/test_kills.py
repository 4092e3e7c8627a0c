"""100,000 events through source and sink, with two kills of the driver and two of executors."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from checkpointstores.blob import BlobCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from tests.spark.conftest import HERE, HUB
from tests.spark.sink_handlers import CONTAINER, FOLDER, STORAGE
from tests.spark.standalone import TIMEOUT_S, Driver, executor_above

PARTITIONS = 4
EVENTS = 100_000
GROUP = ConsumerGroup(fully_qualified_namespace="127.0.0.1", eventhub_name=HUB)


class Ledger:
    """What handlers were given, as they wrote it down outside of Spark."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def _calls(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, self._path.read_text().splitlines())

    def delivered(self, *, is_replay: bool) -> Counter[tuple[str, int]]:
        return Counter(
            (call["partition"], number)
            for call in self._calls()
            if call["is_replay"] == is_replay
            for number in range(call["first"], call["last"] + 1)
        )

    def count(self) -> int:
        return len({*self.delivered(is_replay=False), *self.delivered(is_replay=True)})

    def wait_for(self, count: int, driver: Driver) -> None:
        give_up_at = time.monotonic() + TIMEOUT_S
        while self.count() < count:
            driver.check()
            assert time.monotonic() < give_up_at, f"{self.count()} events: {driver.text[-3000:]}"
            time.sleep(0.2)

    def kill_an_executor(self) -> None:
        """Kill the executor of the last call, as long as its Python worker is there."""
        for call in reversed([*self._calls()]):
            with suppress(OSError, KeyError):
                os.kill(executor_above(int(call["worker"])), signal.SIGKILL)
                return
        raise AssertionError("no worker of a call is left")


def publish_more(emulator: EventHubsEmulator, count: int) -> None:
    connection = emulator.connection_string_for(HUB)
    with EventHubProducerClient.from_connection_string(connection) as producer:
        for begin in range(0, count, 250):
            events: list[EventData | AmqpAnnotatedMessage] = [EventData(b"x") for _ in range(250)]
            producer.send_batch(events, partition_id=str(begin // 250 % PARTITIONS))


@pytest.mark.night
@pytest.mark.timeout(3600)
async def test_no_event_is_lost_and_repeated_ones_are_marked(cluster, tmp_path, storage, container):
    """Each kill is in the middle of a batch; the state counts every event once."""
    ledger, done = Ledger(tmp_path / "ledger"), tmp_path / "done"
    group = {"fullyQualifiedNamespace": GROUP.fully_qualified_namespace, "eventHubName": HUB}
    sink = {"handler": "sink_handlers:Ranges", "checkpointStore": "sink_handlers:blob_store"}
    environment = {"PYTHONPATH": str(HERE), FOLDER: str(tmp_path)}
    environment |= {STORAGE: storage, CONTAINER: container}
    with EventHubsEmulator({HUB: PARTITIONS}) as emulator:
        source = {
            "connectionString": emulator.connection_string_for(HUB),
            "startingPosition": "earliest",
            "maxEventsPerTrigger": "8000",
        }
        program = [str(HERE / "sink_program.py"), json.dumps(source), json.dumps({**group, **sink})]
        program += [str(tmp_path / "offsets"), str(done)]

        for killed in (1, 2):
            publish_more(emulator, EVENTS // 4)
            with cluster.driver(*program, env=environment, settings={}) as driver:
                ledger.wait_for(ledger.count() + EVENTS // 10, driver)
                ledger.kill_an_executor()
                ledger.wait_for(EVENTS // 4 * (2 * killed - 1), driver)
                publish_more(emulator, EVENTS // 4)
                ledger.wait_for(ledger.count() + EVENTS // 10, driver)
                driver.kill()
        with cluster.driver(*program, env=environment, settings={}) as driver:
            ledger.wait_for(EVENTS, driver)
            done.touch()
            assert driver.wait() == 0, driver.text

    every = {(str(p), number) for p in range(PARTITIONS) for number in range(EVENTS // PARTITIONS)}
    first, again = ledger.delivered(is_replay=False), ledger.delivered(is_replay=True)
    async with BlobCheckpointStore.from_connection_string(storage, container) as store:
        listed = await store.list_checkpoints(GROUP)
        read = [await store.read_checkpoint(GROUP, found.partition_id) for found in listed]
    print(f"{len(again)} events were repeated, each marked")

    assert {*first, *again} == every
    assert set(first.values()) == {1}
    assert [c and (c.sequence_number, c.state) for c in read] == [
        (EVENTS // PARTITIONS - 1, b"%d" % (EVENTS // PARTITIONS))
    ] * PARTITIONS
