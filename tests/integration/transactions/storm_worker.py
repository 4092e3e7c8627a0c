"""A process of the storm: writes a row for each event in transactions, until input ends.

Arguments: the hub's connection string, the store (a PostgreSQL connection string, or the path of an
SQLite file), owner id, number of keys at once.
"""

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, PartitionContext, PartitionHandler
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.sources.eventhubs import EventHubSource

CONN_STR, STORE, OWNER_ID, KEYS = sys.argv[1:]
IS_SQLITE = not STORE.startswith("postgresql://")
ROW = "INSERT INTO ledger (partition_id, number, key, owner_id) VALUES "
INSERT = ROW + ("(?, ?, ?, ?)" if IS_SQLITE else "(%s, %s, %s, %s)")


class Ledger(PartitionHandler):
    """Writes a row for each event of a call, and the number of rows into the state."""

    uses_transactions = True

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Commit the rows of the batch."""
        rows = [
            (context.partition_id, event.sequence_number, event.properties["key"], OWNER_ID)
            for event in events
        ]
        async with context.transaction() as db:
            if IS_SQLITE:
                db.executemany(INSERT, rows)
            else:
                async with db.cursor() as cursor:
                    await cursor.executemany(INSERT, rows)
            if KEYS == "1":
                context.state = b"%d" % (int(context.state or b"0") + len(rows))


def key_of(event: ReceivedEvent) -> str:
    """Return the key, which is a property."""
    return str(event.properties["key"])


async def main() -> None:
    """Serve until standard input ends."""
    config = EventProcessorConfig(
        initial_position=EventPosition.earliest(),
        load_balancing_interval=timedelta(seconds=1),
        rebalance_interval=timedelta(seconds=0.2),
        ownership_expiration=timedelta(seconds=6),
        shutdown_timeout=timedelta(seconds=10),
        batch_size_max=500,
        key_concurrency=int(KEYS),
        key_selector=key_of,
    )
    store = SqliteCheckpointStore(STORE) if IS_SQLITE else PostgresCheckpointStore(STORE)
    processor = EventProcessor(
        source=EventHubSource.from_connection_string(CONN_STR),
        store=store,
        handler=Ledger,
        owner_id=OWNER_ID,
        config=config,
    )
    async with processor:
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
