"""A program whose handler never returns. Argument: how it hangs, a key of ``WAYS`` in the tests."""

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
    """A log handler whose reader does not read."""

    def emit(self, record: logging.LogRecord) -> None:
        """Block, with this handler's lock, as ``StreamHandler`` does."""
        time.sleep(EVER_S)


class Stuck(PartitionHandler):
    """Prints that it was called, and never returns."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Block the loop, block in the log, ignore cancellation, or wait for a thread."""
        print("called", flush=True)
        while True:
            try:
                if sys.argv[1] == "blocked":
                    time.sleep(EVER_S)  # noqa: ASYNC251 - the mistake that is tested
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
