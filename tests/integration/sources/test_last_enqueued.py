"""The last enqueued event of a partition, which the service sends along with events."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath


@pytest.fixture(name="shared", scope="module")
def _shared() -> Iterator[EventHubsEmulator]:
    """Yield an emulator that no test breaks."""
    with EventHubsEmulator({"hub": 1}) as emulator:
        yield emulator


@pytest.mark.parametrize("path", ReceivePath)
@pytest.mark.parametrize("tracks", [True, False])
async def test_last_enqueued_is_received_only_on_request(shared, path, tracks):
    """Without ``tracks_last_enqueued`` the service does not send it, which saves bytes for each
    event."""
    with EventHubProducerClient.from_connection_string(
        shared.connection_string_for("hub")
    ) as producer:
        producer.send_batch([EventData("only")])
    options = EventHubOptions(receive_path=path, tracks_last_enqueued=tracks)
    async with EventHubSource.from_connection_string(
        shared.connection_string_for("hub"), options=options
    ) as source:
        receiver = await source.open_receiver("$Default", "0", EventPosition.earliest())
        events = await receiver.receive(events_max=1, wait_max=timedelta(seconds=5))

        assert [event.body for event in events] == [b"only"]
        assert (receiver.last_enqueued is not None) is tracks
