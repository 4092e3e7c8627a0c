"""The handler of a storm's processes, which ``eventproc run`` starts.

In the environment: ``STORM_JOURNAL`` (path of the journal), ``STORM_PACE_S`` (the time that an
event takes), ``EVENTPROC_OWNER_ID``.
"""

import asyncio
import json
import os
import time

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from tests.integration.delivery.journal import journal_writer

PACE_S = float(os.environ["STORM_PACE_S"])
record = journal_writer(os.environ["STORM_JOURNAL"], os.environ["EVENTPROC_OWNER_ID"])


class Handler(PartitionHandler):
    """Takes a while for each event, counts it in the state, and records it with the monotonic
    clock, which processes share."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Record the event when it is done."""
        await asyncio.sleep(PACE_S)
        number = int(event.body)
        count, total = json.loads(context.state or b"[0, 0]")
        context.state = json.dumps([count + 1, total + number]).encode()
        record("handled", context.partition_id, number, time.monotonic())
