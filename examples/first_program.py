"""The smallest complete program: an event hub on this machine, a handler and a store."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import EventProcessor, PartitionContext, PartitionHandler, ReceivedEvent
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource

greeted: set[str] = set()
all_greeted = asyncio.Event()


class Greet(PartitionHandler):
    """Greets each person by name."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Handle a batch, in order."""
        for event in events:
            print(f"hello {event.body_as_str()}, partition {context.partition_id}")
            greeted.add(event.body_as_str())
        if len(greeted) == len(NAMES):
            all_greeted.set()


NAMES = ["Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "John", "Leslie", "Tony"]


async def main(hub: str, file: Path) -> None:
    """Process until all were greeted. A real program just calls ``processor.run()``."""
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(hub),
        store=SqliteCheckpointStore(file),
        handler=Greet,
    )
    async with processor:
        await all_greeted.wait()


if __name__ == "__main__":
    with EventHubsEmulator({"people": 4}) as emulator, tempfile.TemporaryDirectory() as folder:
        hub = emulator.connection_string_for("people")
        with EventHubProducerClient.from_connection_string(hub) as producer:
            for name in NAMES:
                producer.send_event(EventData(name), partition_key=name)
        asyncio.run(main(hub, Path(folder) / "group.db"))
    print(f"{len(greeted)} greeted")
