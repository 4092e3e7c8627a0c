"""A handler's thread whose call was cancelled inside of a transaction: it cannot be stopped."""

import asyncio
import threading
import time
from concurrent.futures import CancelledError
from datetime import timedelta

import pytest

from eventproc import BlockingPartitionHandler, CheckpointPolicy, PartitionHandler
from tests.integration.transactions.transaction_setup import (
    Postgres,
    Sqlite,
    done,
    filled_hub,
    processor,
    row_of,
)


@pytest.fixture(name="database", params=["postgres", "sqlite"])
def _database(request, tmp_path):
    """Return each database in turn, with an empty table."""
    if request.param == "sqlite":
        return Sqlite(tmp_path / "store.db")
    return Postgres(request.getfixturevalue("postgres"))


async def test_a_thread_whose_call_was_cancelled_commits_neither_rows_nor_state(database):
    """It leaves its block after the time for a shutdown; the next owner gets the events."""
    hub, errors, states = filled_hub(3, partitions=1), [], []
    loop, is_inside = asyncio.get_running_loop(), asyncio.Event()

    class Late(BlockingPartitionHandler):
        uses_transactions = True

        def process_events(self, context, events):
            context.state = b"undone"
            try:
                with context.transaction() as db:
                    for event in events:
                        db.execute(database.insert, row_of(context, event))
                    loop.call_soon_threadsafe(is_inside.set)
                    while not context.is_cancelled:
                        time.sleep(0.005)
            except BaseException as error:
                errors.append(error)
                raise

    class Following(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            states.append(context.state)
            async with context.transaction() as db:
                for event in events:
                    await done(db.execute(database.insert, row_of(context, event)))

    async with processor(database, hub, Late, shutdown_timeout=timedelta(seconds=1)):
        await is_inside.wait()
    left = database.rows()
    async with processor(database, hub, Following):
        await database.until(3)

    assert [type(error) for error in errors] == [CancelledError]
    assert not left
    assert states[0] is None


async def test_a_thread_that_stays_in_its_block_does_not_keep_the_last_checkpoint(postgres):
    """Events that were handled before, without a transaction, are stored when the pump ends."""
    database, hub = Postgres(postgres), filled_hub(2, partitions=1)
    loop, is_inside, may_leave = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    class Stuck(BlockingPartitionHandler):
        uses_transactions = True

        def process_event(self, context, event):
            if event.sequence_number == 0:
                return
            with context.transaction():
                loop.call_soon_threadsafe(is_inside.set)
                may_leave.wait(60)

    settings = {"shutdown_timeout": timedelta(seconds=2)}
    manual = CheckpointPolicy.manual()
    try:
        async with processor(database, hub, Stuck, checkpoint_policy=manual, **settings):
            await is_inside.wait()
        stored = database.query("SELECT sequence_number FROM checkpoint")
    finally:
        may_leave.set()

    assert stored == [(0,)]
