"""Reads a hub from its first event on, although the hub keeps only the newest fifty of them.

The emulator captures its events to files. With Azure, ``BlobCaptureFiles`` has the service's.
"""

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.emulator import CaptureConfiguration, EventHubsEmulator, Retention
from eventproc.models import OutgoingEvent
from eventproc.sources.capture import CapturedHub, FolderCaptureFiles
from eventproc.sources.eventhubs import EventHubPublisher, EventHubSource

COUNT = 1000
numbers: list[int] = []
all_handled = asyncio.Event()


class History(PartitionHandler):
    """Keeps the number of each event."""

    async def process_event(self, _: PartitionContext, event: ReceivedEvent) -> None:
        """Keep it."""
        numbers.append(event.sequence_number)
        if len(numbers) == COUNT:
            all_handled.set()


async def publish(hub: str, first: int, end: int) -> None:
    events = [OutgoingEvent(body=b"%d" % n, partition_id="0") for n in range(first, end)]
    async with EventHubPublisher.from_connection_string(hub) as publisher:
        await publisher.publish(events, patience=timedelta(seconds=30))


async def main(folder: Path) -> None:
    capture = CaptureConfiguration(folder=folder, interval=timedelta(seconds=1))
    retention = Retention(events_max=50)
    with EventHubsEmulator({"orders": 1}, retention=retention, capture=capture) as emulator:
        hub = emulator.connection_string_for("orders")
        await publish(hub, 0, COUNT - 20)
        await asyncio.sleep(2)  # Until the window is a file.
        await publish(hub, COUNT - 20, COUNT)
        source = CapturedHub(EventHubSource.from_connection_string(hub), FolderCaptureFiles(folder))
        async with EventProcessor(source=source, store=MemoryCheckpointStore(), handler=History):
            await all_handled.wait()
    assert numbers == list(range(COUNT))
    print(f"{len(numbers)} events in order, of which the hub had kept 50")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))
