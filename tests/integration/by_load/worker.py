"""A process that serves its share of a hub by load, and says each ten seconds how busy it was.

Arguments: connection string of the hub, path of the SQLite store, owner id, placement.
"""

import asyncio
import json
import sys
from datetime import timedelta

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc._core.placement.names import placement_named
from eventproc.sources.eventhubs import EventHubSource

CONN_STR, STORE, OWNER_ID, PLACEMENT = sys.argv[1:]
EVENT_S = 0.02
busy_s: dict[str, float] = {}


class Sleeping(PartitionHandler):
    """Takes the same time for each event."""

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """Sleep, and count the time for the partition."""
        await asyncio.sleep(EVENT_S)
        busy_s[context.partition_id] = busy_s.get(context.partition_id, 0.0) + EVENT_S


async def main() -> None:
    """Serve until the process is ended."""
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(CONN_STR),
        store=SqliteCheckpointStore(STORE),
        handler=Sleeping,
        owner_id=OWNER_ID,
        config=EventProcessorConfig(
            placement=placement_named(PLACEMENT),
            initial_position=EventPosition.latest(),
            load_balancing_interval=timedelta(seconds=5),
            ownership_expiration=timedelta(seconds=20),
        ),
    )
    async with processor:
        while True:
            await asyncio.sleep(10)
            statistics = processor.statistics()
            line = {
                "owned": statistics.owned,
                "busy_s": dict(busy_s),
                "moves": statistics.claim_count + statistics.steal_count,
            }
            busy_s.clear()
            print(json.dumps(line), flush=True)


asyncio.run(main())
