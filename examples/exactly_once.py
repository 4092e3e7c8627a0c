"""Exactly once: the rows of a handler and its position are committed in one transaction."""

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub

CONFIG = EventProcessorConfig(initial_position=EventPosition.earliest())


class Ledger(PartitionHandler):
    """Writes a row for each order."""

    uses_transactions = True

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:
        """The end of the block commits the row, and that the event is handled."""
        async with context.transaction() as db:
            db.execute("INSERT INTO ledger VALUES (?)", [event.body_as_str()])


def query(path: Path, statement: str) -> Sequence[Any]:
    """Run a statement, and return its first row."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute(statement).fetchone() or ()


async def main(path: Path) -> None:
    """Handle all orders in two runs."""
    async with SqliteCheckpointStore(path):  # It creates the file.
        query(path, "CREATE TABLE ledger (number TEXT)")
    hub = MemoryHub(2)
    for number in range(100):
        hub.publish(str(number).encode())
    for wanted in (50, 100):
        source, store = MemoryEventSource(hub), SqliteCheckpointStore(path)
        async with EventProcessor(source=source, store=store, handler=Ledger, config=CONFIG):
            while query(path, "SELECT count(*) FROM ledger")[0] < wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    row_count, order_count = query(path, "SELECT count(*), count(DISTINCT number) FROM ledger")
    print(f"{row_count} rows of {order_count} orders")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(Path(folder) / "ledger.db"))
