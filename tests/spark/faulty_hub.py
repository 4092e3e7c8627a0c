"""Recipes for Spark's Python workers whose sources fail as a test requests.

Tests write what the recipes have to know to files in a shared folder, which an environment variable
names: workers have the environment that Java was started with.
"""

import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource

FOLDER = "EVENTPROC_TEST_FOLDER"


def folder() -> Path:
    """Return the folder that tests and workers share."""
    return Path(os.environ[FOLDER])


def source_killed_once(options: EventHubOptions) -> EventHubSource:
    """Make a source that kills its process once in the middle of a range."""
    return KillingSource.from_connection_string((folder() / "hub").read_text(), options=options)


class KillingSource(EventHubSource):
    """Kills its process at the third receive, unless a process was killed that way before."""

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        """Open a receiver that counts the calls."""
        receiver = await super().open_receiver(consumer_group, partition_id, position)
        return KillingReceiver(receiver)


class KillingReceiver(PartitionReceiver):
    """Counts the calls of ``receive``."""

    def __init__(self, receiver: PartitionReceiver) -> None:
        self._receiver = receiver
        self._left = 3

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        """Receive, or kill the process."""
        self._left -= 1
        killed = folder() / "killed"
        if self._left == 0 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return await self._receiver.receive(events_max=events_max, wait_max=wait_max)

    async def close(self) -> None:
        """Close the real receiver."""
        await self._receiver.close()

    @property
    def last_enqueued(self) -> None:
        """Return nothing: no test reads it."""
