"""Votes for a compacted hub: events that are gone need no process, as far as the hub says."""

from datetime import timedelta

from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._group.autoscaler import read_group
from eventproc.emulator import EventHubsEmulator, HubConfiguration
from eventproc.models import ConsumerGroup
from eventproc.sources.eventhubs import EventHubSource

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="latest")


async def test_a_backlog_begins_at_the_first_event_that_is_left():
    """Before it, later events of their keys have superseded all others."""
    with EventHubsEmulator([HubConfiguration("latest", 1, is_compacted=True)]) as emulator:
        hub = emulator.connection_string_for("latest")
        with EventHubProducerClient.from_connection_string(hub) as producer:
            for number in range(20):
                producer.send_event(EventData("x"), partition_key=f"{number % 4}")
        async with (
            MemoryCheckpointStore() as store,
            EventHubSource.from_connection_string(hub) as source,
        ):
            reading = await read_group(
                store, GROUP, source, expiration=timedelta(minutes=1), clock=lambda: 0.0
            )

    assert reading.backlog == 4
