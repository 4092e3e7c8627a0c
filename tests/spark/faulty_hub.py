"""Recipes for Spark's Python workers that break as a test needs it.

What they have to know lies in files of a folder that an environment variable names: the workers
have the environment that Java was started with.
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
    """Return the folder that test and worker share."""
    return Path(os.environ[FOLDER])


def dying_once(options: EventHubOptions) -> EventHubSource:
    """Make a source whose process is killed in the middle of a range, the first time."""
    return DyingSource.from_connection_string((folder() / "hub").read_text(), options=options)


class DyingSource(EventHubSource):
    """Kills its process at the third receive, unless some process died that way before."""

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        """Open a receiver with a bomb in it."""
        receiver = await super().open_receiver(consumer_group, partition_id, position)
        return DyingReceiver(receiver)


class DyingReceiver(PartitionReceiver):
    """Counts down."""

    def __init__(self, receiver: PartitionReceiver) -> None:
        self._receiver = receiver
        self._left = 3

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        """Receive, or die."""
        self._left -= 1
        died = folder() / "died"
        if self._left == 0 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return await self._receiver.receive(events_max=events_max, wait_max=wait_max)

    async def close(self) -> None:
        """Close the real one."""
        await self._receiver.close()

    @property
    def last_enqueued(self) -> None:
        """Nothing that matters here."""
