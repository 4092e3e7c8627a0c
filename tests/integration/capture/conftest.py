"""A hub of the emulator that forgets at once, and the files that it was captured to."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eventproc.emulator import CaptureConfiguration, EventHubsEmulator, Retention
from eventproc.models import OutgoingEvent
from eventproc.sources.eventhubs import EventHubPublisher

PATIENCE = timedelta(seconds=30)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    return tmp_path / "captured"


@pytest.fixture(name="emulator")
def _emulator(folder: Path) -> Iterator[EventHubsEmulator]:
    capture = CaptureConfiguration(
        folder=folder, interval=timedelta(milliseconds=300), bytes_max=20_000, is_deflated=True
    )
    with EventHubsEmulator(
        {"orders": 2}, retention=Retention(events_max=50), capture=capture
    ) as emulator:
        yield emulator


async def publish(emulator: EventHubsEmulator, partition_id: str, first: int, end: int) -> None:
    """Publish events with these numbers as bodies."""
    events = [
        OutgoingEvent(
            body=b"%d" % number,
            partition_id=partition_id,
            properties={"even": number % 2 == 0, "number": number},
            content_type="text/plain",
        )
        for number in range(first, end)
    ]
    text = emulator.connection_string_for("orders")
    async with EventHubPublisher.from_connection_string(text) as publisher:
        await publisher.publish(events, patience=PATIENCE)
