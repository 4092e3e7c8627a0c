"""Publishers for Spark's Python workers, which find this file by their ``PYTHONPATH``."""

import os
import signal
from collections.abc import Sequence
from datetime import timedelta

from eventproc.models import OutgoingEvent
from eventproc.sources.eventhubs import EventHubPublisher
from tests.spark.faulty_hub import folder


def killed_once() -> EventHubPublisher:
    """Make a publisher that kills its process once, between two batches of rows."""
    return KillingPublisher.from_connection_string((folder() / "hub").read_text())


class KillingPublisher(EventHubPublisher):
    """Kills its process at the second call, unless a process was killed that way before."""

    calls = 0

    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:
        """Publish, or kill the process."""
        self.calls += 1
        killed = folder() / "killed"
        if self.calls > 1 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        await super().publish(events, patience=patience)
