"""Links to a service that falls silent, and to one that never answers."""

import asyncio
import platform
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from eventproc.emulator import EmulatorConfiguration, EmulatorServer, hubs_of
from eventproc.errors import SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath
from eventproc.sources.eventhubs._client import EventHubAddress
from eventproc.sources.eventhubs._direct_path.azure_internals import PartitionLink

GROUP = "$Default"
EARLIEST = EventPosition.earliest()


@pytest.fixture(name="knows_platform", scope="module", autouse=True)
def _knows_platform() -> None:
    """Ask for the name that Azure's client sends: it starts a program once, within the loop."""
    platform.platform()


@asynccontextmanager
async def silent_link() -> AsyncIterator[PartitionLink]:
    """Yield a link to an empty partition, with a ``silence_max`` of 20 seconds."""
    configuration = EmulatorConfiguration(hubs=hubs_of({"orders": 1}), port=0)
    async with EmulatorServer(configuration) as emulator:
        hub = EventHubAddress.from_connection_string(
            emulator.connection_string_for("orders"),
            eventhub_name=None,
            options=EventHubOptions(silence_max=timedelta(seconds=20)),
        )
        await hub.open()
        link = await PartitionLink.open(hub.consumer(GROUP), GROUP, "0", EARLIEST, owner_level=None)
        try:
            yield link
        finally:
            await link.close()


async def test_a_link_that_received_nothing_for_silence_max_is_broken(monkeypatch):
    """Otherwise its partition would not be read until the operating system closes the
    connection."""
    async with silent_link() as link:
        opened_at = time.time()
        monkeypatch.setattr(time, "time", lambda: opened_at + 15)
        await link.maintain()
        monkeypatch.setattr(time, "time", lambda: opened_at + 21)
        with pytest.raises(SourceUnavailableError):
            await link.maintain()


async def test_a_link_that_is_not_read_is_not_broken_by_its_silence(monkeypatch):
    """A slow handler may leave no room for events for long; ``silence_max`` begins again when
    there is some."""
    async with silent_link() as link:
        opened_at = time.time()
        for seconds in (15, 30, 45):
            monkeypatch.setattr(time, "time", lambda s=seconds: opened_at + s)
            await link.maintain(is_reading=False)
        monkeypatch.setattr(time, "time", lambda: opened_at + 60)
        await link.maintain()
        monkeypatch.setattr(time, "time", lambda: opened_at + 66)
        with pytest.raises(SourceUnavailableError):
            await link.maintain()


async def test_an_attempt_to_open_a_receiver_that_is_cut_off_closes_its_socket():
    """A processor tries again throughout an outage: it would run out of descriptors."""
    has_begun, has_ended = asyncio.Event(), asyncio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        has_begun.set()
        await reader.read()
        has_ended.set()
        writer.close()

    server = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    source = EventHubSource.from_connection_string(
        f"Endpoint=sb://127.0.0.1:{port}/;SharedAccessKeyName=a;SharedAccessKey=b=;"
        "EntityPath=orders;UseDevelopmentEmulator=true",
        options=EventHubOptions(receive_path=ReceivePath.DIRECT),
    )
    async with server, source, asyncio.timeout(10):
        opening = asyncio.create_task(source.open_receiver(GROUP, "0", EARLIEST))
        await has_begun.wait()
        opening.cancel()
        await asyncio.wait({opening})
        await has_ended.wait()

    assert opening.cancelled()
