"""A hub that refuses connections, as the health endpoints show it; over real sockets."""

import asyncio
import re
from datetime import timedelta

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.health.health_setup import Idle, Setup
from tests.unit.eventproc._delivery.test_handler_threads import SHORT

PARTITION_COUNT = 2


def sample(text: str, name: str) -> list[float]:
    """Return the values of a metric."""
    return [float(value) for value in re.findall(rf"^{name}{{[^}}]*}} (\S+)$", text, re.MULTILINE)]


async def lags(setup: Setup) -> list[int | None]:
    """Return the lag of each partition."""
    return [p["lag"] for p in (await setup.entry("/partitions"))["partitions"]]


@pytest.mark.long
async def test_a_hub_that_cannot_be_reached_is_red_with_its_cause_and_has_no_lag():
    """The process is live: a restart would not bring the hub back."""
    setup = Setup()
    with EventHubsEmulator({"hub": PARTITION_COUNT}) as emulator:
        hub = emulator.connection_string_for("hub")
        processor = EventProcessor(
            source=EventHubSource.from_connection_string(hub),
            store=MemoryCheckpointStore(),
            handler=Idle,
            owner_id="a",
            health=setup.health,
            telemetry=setup.telemetry,
            config=EventProcessorConfig(**SHORT),
        )
        async with processor:
            await setup.serves()
            with EventHubProducerClient.from_connection_string(hub) as producer:
                for partition_id in range(PARTITION_COUNT):
                    producer.send_event(EventData(b"x"), partition_id=str(partition_id))
            while await lags(setup) != [0, 0]:  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(0.05)
            emulator.refuse_connections(timedelta(seconds=20))
            emulator.drop_connections()
            red = await setup.becomes("/ready", 503)
            live = (await setup.ask("/live")).status
            during = await lags(setup)
            partitions = (await setup.entry("/partitions"))["partitions"]
            metrics = str((await setup.ask("/metrics")).body)
            await setup.becomes("/ready", 200)

    assert live == 200
    assert [reason[:46] for reason in red["reasons"]] == [
        f"partition {p} is not served: no events for 10 s:" for p in range(PARTITION_COUNT)
    ]
    assert during == [None, None]
    assert all(p["receiver_failing_s"] >= 10 for p in partitions)
    assert min(sample(metrics, "eventproc_receiver_failing_seconds")) >= 10
    assert sample(metrics, "eventproc_lag_events") == []
