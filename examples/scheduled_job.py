"""A report for each night, written by one of three processes, whichever of them run.

Each process waits for the time, and then for the lease. The first one writes the report and, in the
same transaction, that this night is done. The next one finds the night done, or does it.
"""

import asyncio
import sqlite3
from contextlib import AsyncExitStack
from datetime import timedelta

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    HeldResource,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
)

NIGHTS = ["2026-01-30", "2026-01-31", "2026-02-01"]
config = ResourceProcessorConfig(load_balancing_interval=timedelta(seconds=0.5))
account = MemoryAccount()
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE report (night TEXT PRIMARY KEY, writer TEXT)")


class Nothing(ResourceHandler):
    """For a group that has a lease only."""

    async def hold(self, held: HeldResource) -> None:
        """Never called: there are no resources."""


async def job(processor: ResourceProcessor) -> None:
    """Write the report of each night, unless another process has done it."""
    for night in NIGHTS:
        await asyncio.sleep(0.1)  # Elsewhere until two o'clock of this night.
        async with processor.lease("nightly-report"):
            with database:  # One transaction: the report, and that it is done.
                row = night, processor.owner_id
                database.execute("INSERT OR IGNORE INTO report VALUES (?, ?)", row)


async def main() -> None:
    """Run three processors, as three processes would; show how many reports there are."""
    jobs, nothing = [], Resources([])
    async with AsyncExitStack() as stack:
        for _ in range(3):
            store = MemoryCheckpointStore(account)
            processor = ResourceProcessor(
                resources=nothing, store=store, group="jobs", handler=Nothing, config=config
            )
            jobs.append(job(await stack.enter_async_context(processor)))
        await asyncio.gather(*jobs)
    [(count,)] = database.execute("SELECT count(*) FROM report")
    print(f"{count} reports of {len(NIGHTS)} nights")


asyncio.run(main())
