"""A real hub or topic is deleted and created again under a running group, and between two runs."""

import asyncio
import logging
from datetime import timedelta

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventproc import Backoff, RecreatedHub
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from tests.integration.sources.processors import Fleet, events_named, numbered, until
from tests.integration.sources.receive_paths import RECEIVE_PATHS

SOON = timedelta(seconds=0.2)


class Hub:
    """A hub in the emulator."""

    def __init__(self, emulator, receive_path):
        self.emulator = emulator
        self.receive_path = receive_path

    def source(self):
        return EventHubSource.from_connection_string(
            self.emulator.connection_string_for("orders"),
            options=EventHubOptions(receive_path=self.receive_path),
        )

    def recreate(self):
        self.emulator.recreate_hub("orders")

    def publish(self, _partition, *bodies):
        with EventHubProducerClient.from_connection_string(
            self.emulator.connection_string_for("orders")
        ) as producer:
            producer.send_batch([EventData(body) for body in bodies], partition_id="0")


class Topic:
    """A topic of Kafka, which does not say when it was created."""

    def __init__(self, topic):
        self.source = topic.source
        self.publish = topic.publish
        self._topic = topic

    def recreate(self):
        topic = self._topic
        topic.admin.delete_topics([topic.name])[topic.name].result(20)
        topic.create()


@pytest.fixture(name="hub")
def _hub(request):
    if request.param == "kafka":
        yield Topic(request.getfixturevalue("topic"))
        return
    with EventHubsEmulator({"orders": 1}) as emulator:
        yield Hub(emulator, request.param)


def processor(fleet, **settings):
    return fleet.processor(
        "a",
        partition_ids_interval=SOON,
        handler_backoff=Backoff(initial=timedelta(seconds=0.05)),
        **settings,
    )


async def handled_before(fleet, hub):
    """Have a group handle twelve events; then delete the hub and create it with three others."""
    await asyncio.to_thread(hub.publish, 0, *numbered(0, 12))
    async with processor(fleet):
        await fleet.until(12)
    await asyncio.to_thread(hub.recreate)
    await asyncio.to_thread(hub.publish, 0, b"a", b"b", b"c")
    fleet.handled.clear()


@pytest.mark.parametrize("hub", [*RECEIVE_PATHS, "kafka"], indirect=True)
async def test_a_group_that_starts_after_it_stops_by_default(hub, caplog):
    """Also when the new hub has grown beyond the position; then ``earliest`` handles all of it."""
    caplog.set_level(logging.DEBUG, "eventproc")
    fleet = Fleet(hub)
    await handled_before(fleet, hub)
    async with processor(fleet):
        await until(lambda: events_named(caplog, "hub_recreated"))
        await asyncio.to_thread(hub.publish, 0, *numbered(0, 20))
        await until(lambda: len(events_named(caplog, "adoption_failed")) >= 2)
    stopped = list(fleet.handled)
    async with processor(fleet, recreated_hub=RecreatedHub.EARLIEST):
        await fleet.until(23)

    assert stopped == []
    assert [body for p, body in fleet.handled if p == "0"] == [b"a", b"b", b"c", *numbered(0, 20)]


@pytest.mark.parametrize("hub", RECEIVE_PATHS, indirect=True)
async def test_a_running_group_reads_the_new_hub_from_its_first_event(hub, caplog):
    """With ``earliest``; the report names the last event of the former hub.

    Not with Kafka: librdkafka 2.16 ends the process if the topic that it reads is created again.
    """
    fleet = Fleet(hub)
    await asyncio.to_thread(hub.publish, 0, *numbered(0, 12))
    async with processor(fleet, recreated_hub=RecreatedHub.EARLIEST):
        await fleet.until(12)
        fleet.handled.clear()
        await asyncio.to_thread(hub.recreate)
        await asyncio.to_thread(hub.publish, 0, b"a", b"b", b"c")
        await fleet.until(3)
    (report,) = events_named(caplog, "hub_recreated")

    assert [body for p, body in fleet.handled if p == "0"] == [b"a", b"b", b"c"]
    assert (report.policy, report.sequence_number) == ("earliest", 11)
