"""A new process that starts receiving, and prints how long that took. Started by ``start.py``.

It imports nothing from this folder, and only long-standing names of eventproc, so that the Python
of another checkout can run it.
"""

import json
import sys
import time

SETTINGS = json.loads(sys.argv[1])
spawned_at_s: float = SETTINGS["spawned_at_s"]
began_at_s = time.time()

import asyncio  # noqa: E402 - the time of these imports is measured
from collections.abc import Sequence  # noqa: E402
from datetime import timedelta  # noqa: E402

from checkpointstores.blob import BlobCheckpointStore  # noqa: E402
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore  # noqa: E402
from eventproc import (  # noqa: E402
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.sources.eventhubs import EventHubSource  # noqa: E402

imported_at_s = time.time()
first_event = asyncio.Event()


class First(PartitionHandler):
    """Waits for one event."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Read the body, as a handler does."""
        del context
        if events and events[0].body:
            first_event.set()


async def run() -> None:
    """Serve until an event was handled."""
    store = SETTINGS["storage"] and BlobCheckpointStore.from_connection_string(
        SETTINGS["storage"], SETTINGS["container"]
    )
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(SETTINGS["hub"]),
        store=store or MemoryCheckpointStore(MemoryAccount()),
        handler=First,
        consumer_group=SETTINGS["group"],
        config=EventProcessorConfig(rebalance_interval=timedelta(seconds=0.05)),
    )
    async with processor:
        await first_event.wait()
        print(
            json.dumps(
                {
                    "import_s": imported_at_s - began_at_s,
                    "first_s": time.time() - spawned_at_s,
                    "cpu_s": time.process_time(),
                }
            ),
            flush=True,
        )


asyncio.run(run())
