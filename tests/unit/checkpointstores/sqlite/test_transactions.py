"""Transactions of handlers in a SQLite file."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore


async def test_a_transaction_that_is_cancelled_while_it_waits_for_the_lock_leaves_none_behind(
    tmp_path,
):
    """It would get the lock later, and nobody could write to the file any more."""
    path = tmp_path / "store.db"
    async with SqliteCheckpointStore(path) as store:
        transactions = store.transactions()
        await transactions.open()
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
            beginning = asyncio.create_task(enter(transactions))
            await asyncio.sleep(0.2)
            beginning.cancel()
            asyncio.get_running_loop().call_later(0.2, other.execute, "ROLLBACK")
            with pytest.raises(asyncio.CancelledError):
                await beginning
            await asyncio.sleep(0.5)
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        await transactions.close()


async def enter(transactions):
    """Begin a transaction."""
    async with transactions.begin(is_blocking=False, idle_max=timedelta(seconds=60)):
        raise AssertionError("another process has the lock")
