"""The handler of a storm's processes, which ``eventproc run`` starts.

In the environment: ``STORM_STORY`` (the file to tell in), ``STORM_PACE_S`` (what an event takes),
``EVENTPROC_OWNER_ID``.
"""

import asyncio
import os
import time

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from tests.integration.delivery.telling import teller

PACE_S = float(os.environ["STORM_PACE_S"])
tell = teller(os.environ["STORM_STORY"], os.environ["EVENTPROC_OWNER_ID"])


class Handler(PartitionHandler):
    """Takes a while for each event and tells of it, with the time that all processes share."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Tell of it when it is done."""
        await asyncio.sleep(PACE_S)
        tell("handled", context.partition_id, event.sequence_number, time.monotonic())
