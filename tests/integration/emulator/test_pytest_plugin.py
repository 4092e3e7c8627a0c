"""The plugin for pytest gives each test an event hub of its own, without an import."""

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator, HubConfiguration


def publish(connection_string, hub, body):
    """Send one event with Azure's client."""
    with EventHubProducerClient.from_connection_string(
        connection_string, eventhub_name=hub
    ) as producer:
        producer.send_event(EventData(body), partition_id="0")


@pytest.mark.parametrize("body", [b"first", b"second"])
def test_each_test_has_an_empty_hub(eventhubs_emulator, eventhubs_connection_string, body):
    """What another test published is not there."""
    publish(eventhubs_connection_string, None, body)

    assert eventhubs_emulator.partition_ids("event-hub") == ["0", "1", "2", "3"]
    assert [event.body for event in eventhubs_emulator.events("event-hub", "0")] == [body]


@pytest.mark.eventhubs({"orders": 2, "prices": 1}, consumer_groups=["billing"])
def test_a_marker_names_hubs_and_settings(eventhubs_emulator, eventhubs_connection_string):
    """The connection string is that of the first hub; ``connection_string`` serves all."""
    publish(eventhubs_connection_string, None, b"order")
    publish(eventhubs_emulator.connection_string, "prices", b"price")

    assert eventhubs_emulator.partition_ids("orders") == ["0", "1"]
    assert [event.body for event in eventhubs_emulator.events("prices", "0")] == [b"price"]
    assert {hub.consumer_groups for hub in eventhubs_emulator.configuration.hubs} == {("billing",)}


@pytest.mark.eventhubs(hubs={"orders": 2})
def test_a_marker_takes_hubs_by_name(eventhubs_emulator):
    """As its description, which pytest shows, spells them."""
    assert eventhubs_emulator.partition_ids("orders") == ["0", "1"]


@pytest.mark.eventhubs([HubConfiguration("prices", 4, is_compacted=True)])
def test_a_marker_takes_configurations(eventhubs_emulator):
    """As the constructor of the emulator does."""
    assert isinstance(eventhubs_emulator, EventHubsEmulator)
    assert eventhubs_emulator.configuration.hubs[0].is_compacted
