"""Transactions of several keys of one partition, each on a connection of its own."""

import asyncio
from datetime import timedelta

from eventproc import PartitionHandler
from tests.integration.transactions.transaction_setup import Postgres, filled_hub, processor, row_of

KEYS = 4


async def test_the_blocks_of_keys_run_at_once_and_their_commits_follow_one_another(postgres):
    """Each commit replaces the checkpoint of the one before, so none of them is refused."""
    database, hub = Postgres(postgres), filled_hub(KEYS, partitions=1)
    all_inside = asyncio.Barrier(KEYS)
    calls, errors = [], []

    class Concurrent(PartitionHandler):
        uses_transactions = True

        async def process_event(self, context, event):
            calls.append(event.sequence_number)
            async with context.transaction() as db:
                await db.execute(database.insert, row_of(context, event))
                await all_inside.wait()

        async def process_error(self, context, error):
            errors.append(error)

    async with processor(database, hub, Concurrent, key_concurrency=KEYS):
        await database.until(KEYS)

    assert (sorted(calls), errors) == (list(range(KEYS)), [])
    assert len(database.rows()) == KEYS


async def test_the_server_ends_a_block_that_is_idle_for_an_expiration(postgres):
    """So that the locks of a frozen process do not stop the new owner."""
    database, hub = Postgres(postgres), filled_hub(1, partitions=1)
    limits = []

    class Asking(PartitionHandler):
        uses_transactions = True

        async def process_event(self, context, event):
            async with context.transaction() as db:
                cursor = await db.execute("SHOW idle_in_transaction_session_timeout")
                limits.append(await cursor.fetchone())
                await db.execute(database.insert, row_of(context, event))

    async with processor(database, hub, Asking, ownership_expiration=timedelta(seconds=31)):
        await database.until(1)

    assert limits == [("31s",)]
