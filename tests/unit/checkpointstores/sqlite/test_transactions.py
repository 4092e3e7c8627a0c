"""Transactions of handlers in a SQLite file."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.errors import TransactionsRefusedError
from eventproc.models import CheckpointUpdate, ConsumerGroup

IDLE_MAX = timedelta(seconds=60)
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")


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
    async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX):
        raise AssertionError("another process has the lock")


@asynccontextmanager
async def ledger(path):
    """Yield the transactions of a store in whose file a handler has a table."""
    async with SqliteCheckpointStore(path) as store:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE IF NOT EXISTS ledger (name TEXT UNIQUE)")
        transactions = store.transactions()
        await transactions.open()
        yield transactions
        await transactions.close()


def names(path):
    """Return the rows of the table."""
    with closing(sqlite3.connect(path)) as db:
        return [name for (name,) in db.execute("SELECT name FROM ledger ORDER BY 1")]


UPDATE = CheckpointUpdate(
    partition_id="0", offset="o3", sequence_number=3, writer="a/1/1", replaces=None
)


async def test_a_transaction_that_sqlite_has_ended_stores_no_position(tmp_path):
    """A conflict clause rolled the rows back, and the handler went on."""
    path = tmp_path / "store.db"

    async def handle(transactions):
        async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
            for name in ("a", "b", "a"):
                with suppress(sqlite3.IntegrityError):
                    transaction.db.execute("INSERT OR ROLLBACK INTO ledger VALUES (?)", [name])
            await transaction.commit(GROUP, UPDATE)

    async with ledger(path) as transactions:
        with pytest.raises(TransactionsRefusedError, match="its rows so far were rolled back"):
            await handle(transactions)
    async with SqliteCheckpointStore(path) as store:
        stored = await store.read_checkpoint(GROUP, "0")

    assert (names(path), stored) == ([], None)


async def test_a_handler_may_set_how_rows_look(tmp_path):
    """For its own statements, in this block; also if that fails."""
    path = tmp_path / "store.db"
    checkpoint = None
    async with ledger(path) as transactions:
        with suppress(LookupError):
            async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
                transaction.db.row_factory = lambda *_: {"a": "row"}
                raise LookupError
        for name in ("a", "b"):
            async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
                assert transaction.db.row_factory is None
                transaction.db.row_factory = lambda *_: {"a": "row"}
                transaction.db.text_factory = bytes
                transaction.db.execute("INSERT INTO ledger VALUES (?)", [name])
                update = replace(UPDATE, replaces=checkpoint)
                checkpoint = (await transaction.commit(GROUP, update)).checkpoint
            assert checkpoint is not None

    assert names(path) == ["a", "b"]


async def test_a_block_that_outlives_a_new_start_is_alone_in_its_transaction(tmp_path):
    """A thread cannot be stopped; what it writes is rolled back when it ends."""
    path = tmp_path / "store.db"
    async with ledger(path) as transactions:
        old = transactions.begin(is_blocking=True, idle_max=IDLE_MAX)
        in_old = await old.__aenter__()
        await transactions.open()
        in_old.db.execute("INSERT INTO ledger VALUES ('old')")
        await old.__aexit__(None, None, None)
        async with transactions.begin(is_blocking=True, idle_max=IDLE_MAX) as transaction:
            transaction.db.execute("INSERT INTO ledger VALUES ('new')")
            await transaction.commit(GROUP, UPDATE)
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            in_old.db.execute("SELECT 1")

    assert names(path) == ["new"]


@pytest.mark.parametrize("fails", [True, False])
async def test_a_task_that_outlives_its_block_writes_nothing(tmp_path, fails):
    """Its rows would be stored without a position, and again if the event is tried again."""
    path = tmp_path / "store.db"
    async with ledger(path) as transactions:
        with suppress(LookupError):
            async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
                kept = transaction.db
                await transaction.commit(GROUP, UPDATE)
                if fails:
                    raise LookupError
        with pytest.raises(sqlite3.Error, match=r"closed|not authorized"):
            kept.execute("INSERT INTO ledger VALUES ('late')")
        async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
            transaction.db.execute("INSERT INTO ledger VALUES ('next')")
            if fails:
                with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                    kept.execute("INSERT INTO ledger VALUES ('late')")

    assert names(path) == []


async def test_a_handler_that_closes_the_connection_fails_alone(tmp_path):
    """Other partitions and later events get another one."""
    path = tmp_path / "store.db"

    async def close(transactions):
        async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
            transaction.db.execute("INSERT INTO ledger VALUES ('lost')")
            transaction.db.close()
            await transaction.commit(GROUP, UPDATE)

    async with ledger(path) as transactions:
        with pytest.raises(TransactionsRefusedError, match="closed the connection"):
            await close(transactions)
        async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
            transaction.db.execute("INSERT INTO ledger VALUES ('next')")
            await transaction.commit(GROUP, UPDATE)

    assert names(path) == ["next"]
