"""Exactly once: the rows of a handler and its position are committed in one transaction.

The processor is stopped half-way. The next one continues after the last event whose row was
committed, so each order has one row, although the table forbids no second one.
"""

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import EventPosition, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.sources.memory import MemoryEventSource, MemoryHub

ORDERS = 100


class Ledger(PartitionHandler):
    """Writes a row for each order."""

    uses_transactions = True

    async def process_event(self, context, event):
        async with context.transaction() as db:
            db.execute("INSERT INTO ledger VALUES (?)", [event.body_as_str()])


async def serve(path, hub, rows):
    """Serve until the table has so many rows."""
    processor = EventProcessor(
        source=MemoryEventSource(hub),
        store=SqliteCheckpointStore(path),
        handler=Ledger,
        config=EventProcessorConfig(initial_position=EventPosition.earliest()),
    )
    async with processor:
        while count_rows(path) < rows:
            await asyncio.sleep(0.01)


def count_rows(path):
    """Return the number of rows."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT count(*) FROM ledger").fetchone()[0]


async def main(path):
    """Handle all orders in two runs."""
    async with SqliteCheckpointStore(path):
        pass  # It creates the file.
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE ledger (number TEXT)")
    hub = MemoryHub(2)
    for number in range(ORDERS):
        hub.publish(str(number).encode())
    await serve(path, hub, ORDERS // 2)
    await serve(path, hub, ORDERS)
    with closing(sqlite3.connect(path)) as db:
        [(different,)] = db.execute("SELECT count(DISTINCT number) FROM ledger")
    print(f"{count_rows(path)} rows of {different} orders")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder) / "ledger.db"))
