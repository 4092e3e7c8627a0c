"""Handlers for processors in Spark's workers; they record events in a file for the test."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent

FOLDER = "EVENTPROC_TEST_FOLDER"


def journal() -> Path:
    """Return the file with a line for each handled event: owner, partition, sequence number."""
    return Path(os.environ[FOLDER]) / "fleet-journal"


class Journal(PartitionHandler):
    """Appends a line for each event, in one write, since several processes append."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Append the lines, and take some time."""
        lines = (f"{context.owner_id} {context.partition_id} {e.sequence_number}\n" for e in events)
        with journal().open("a") as file:
            file.write("".join(lines))
        await asyncio.sleep(0.01)


class Stuck(PartitionHandler):
    """Never returns from its first call."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Hang, and ignore cancellation."""
        journal().touch()
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue
