"""A program whose handler never comes back, each in its own way. Argument: the way."""

import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from datetime import timedelta

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub

EVER_S = 1000


class FullPipe(logging.Handler):
    """Nobody reads what is written."""

    def emit(self, record: logging.LogRecord) -> None:
        """Wait for whoever reads; with this handler's lock, as all of them do."""
        time.sleep(EVER_S)


class Stuck(PartitionHandler):
    """Says that it was called, and stays there."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Block the loop, be stuck in the log, ignore cancellation, or wait for a thread."""
        print("called", flush=True)
        while True:
            try:
                if sys.argv[1] == "blocked":
                    time.sleep(EVER_S)  # noqa: ASYNC251 - the mistake that it is about
                elif sys.argv[1] == "logging":
                    logging.getLogger("eventproc").addHandler(FullPipe())
                    logging.getLogger("eventproc").warning("called")
                elif sys.argv[1] == "thread":
                    await asyncio.to_thread(time.sleep, EVER_S)
                await asyncio.sleep(EVER_S)
            except asyncio.CancelledError:
                if sys.argv[1] != "deaf":
                    raise


HUB = MemoryHub(partition_count=1)
HUB.publish(b"")
EventProcessor(
    source=MemoryEventSource(HUB),
    store=MemoryCheckpointStore(MemoryAccount()),
    handler=Stuck,
    config=EventProcessorConfig(shutdown_timeout=timedelta(seconds=0.5)),
).run()
print("returned", flush=True)
