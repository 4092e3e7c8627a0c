"""Transactions of the PostgreSQL store: what a commit stores, and what it leaves alone."""

import asyncio
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from checkpointstores.postgres import PostgresCheckpointStore
from eventproc.models import IN_PART, CheckpointUpdate, ConsumerGroup, SequenceRange, WriteOutcome

IDLE_MAX = timedelta(seconds=30)
STATE = b"\x00'\\\xff" * 10
UNUSUAL_SETTINGS = "-c datestyle=German -c bytea_output=escape -c standard_conforming_strings=off"


@pytest.fixture(name="group")
def _group(request):
    """Return a group of this test alone."""
    return ConsumerGroup(fully_qualified_namespace="ns", eventhub_name=request.node.name)


def update(number, replaces, state=None, offset="0"):
    """Return the write of a position."""
    return CheckpointUpdate(
        partition_id="0",
        offset=offset,
        sequence_number=number,
        writer="w",
        state=state,
        completed=(SequenceRange(number + 2, number + 3), SequenceRange(number + 5, number + 5)),
        isolation=IN_PART,
        replaces=replaces,
    )


async def commit(store, group, write, *, is_blocking=False):
    """Commit a checkpoint in a transaction of its own."""
    async with (
        store.transactions() as transactions,
        transactions.begin(is_blocking=is_blocking, idle_max=IDLE_MAX) as transaction,
    ):
        return await transaction.commit(group, write)


@pytest.mark.parametrize("is_blocking", [False, True])
async def test_a_commit_stores_what_it_returns_whatever_the_settings_of_the_role(
    postgres, group, is_blocking
):
    """Values are literals and results are text there, and both depend on settings."""
    dsn = f"{postgres.dsn}?options={quote(UNUSUAL_SETTINGS)}"
    async with PostgresCheckpointStore(dsn, create_schema=True) as store:
        write = update(7, None, STATE, offset="it's \\ 100%")
        first = await commit(store, group, write, is_blocking=is_blocking)

        assert first.outcome is WriteOutcome.WON
        assert await store.read_checkpoint(group, "0") == first.checkpoint

        write = update(8, first.checkpoint, b"")
        second = await commit(store, group, write, is_blocking=is_blocking)

        assert await store.read_checkpoint(group, "0") == second.checkpoint
        assert second.checkpoint.state is None


async def test_a_commit_from_a_listing_returns_the_state_that_it_keeps(postgres, group):
    """A listing has positions only, and the checkpoint that was written has its state."""
    async with PostgresCheckpointStore(postgres.dsn, create_schema=True) as store:
        await commit(store, group, update(7, None, STATE))
        [listed] = await store.list_checkpoints(group)
        result = await commit(store, group, update(8, listed))

        assert (result.checkpoint.state, result.checkpoint.state_sequence_number) == (STATE, 7)
        assert await store.read_checkpoint(group, "0") == result.checkpoint


@pytest.mark.parametrize("is_new", [False, True])
async def test_a_commit_over_another_checkpoint_stores_nothing(postgres, group, is_new):
    """Whether this processor had seen a checkpoint or none."""
    async with PostgresCheckpointStore(postgres.dsn, create_schema=True) as store:
        seen = (await commit(store, group, update(7, None))).checkpoint
        stored = (await commit(store, group, update(8, seen))).checkpoint
        result = await commit(store, group, update(9, None if is_new else seen))

        assert result.outcome is WriteOutcome.LOST
        assert await store.read_checkpoint(group, "0") == stored


async def test_a_large_state_that_is_kept_is_not_written_again(postgres, group):
    """The new row refers to it; otherwise each position of a partition would cost its state."""
    async with PostgresCheckpointStore(postgres.dsn, schema="kept", create_schema=True) as store:
        stored = (await commit(store, group, update(0, None, bytes(range(256)) * 4_000))).checkpoint
        with psycopg.connect(postgres.dsn, autocommit=True) as db:
            size = "SELECT pg_total_relation_size('kept.checkpoint')"
            [before] = db.execute(size).fetchone() or [0]
            for number in range(1, 11):
                stored = (await commit(store, group, update(number, stored))).checkpoint
            [after] = db.execute(size).fetchone() or [0]

    assert after < before + 100_000


async def deferred(transactions, group):
    """Write rows that the server refuses at the commit."""
    async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
        table = "CREATE TEMP TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
        await transaction.db.execute(table)
        await transaction.db.execute("INSERT INTO once VALUES (1), (1)")
        await transaction.commit(group, update(7, None))


async def test_a_constraint_that_fails_at_the_commit_is_the_handlers_error(postgres, group):
    """It is about its rows, so it is not an unknown outcome, and nothing is stored."""
    async with PostgresCheckpointStore(postgres.dsn, create_schema=True) as store:
        async with store.transactions() as transactions:
            with pytest.raises(psycopg.errors.UniqueViolation):
                await deferred(transactions, group)

        assert await store.read_checkpoint(group, "0") is None


async def test_the_server_ends_a_transaction_that_is_idle_for_too_long(postgres):
    """Each transaction has its own limit, on a connection that is kept."""
    seen: list[str] = []
    transaction: Any  # Only PostgreSQL's can be rolled back on its own.
    setting = "SHOW idle_in_transaction_session_timeout"
    async with PostgresCheckpointStore(postgres.dsn).transactions() as transactions:
        for limit_s in (30, 30, 20):
            limit = timedelta(seconds=limit_s)
            async with transactions.begin(is_blocking=False, idle_max=limit) as transaction:
                seen += await (await transaction.db.execute(setting)).fetchone()
                await transaction.roll_back()

    assert seen == ["30s", "30s", "20s"]


async def test_no_more_transactions_than_the_limit_are_open(postgres):
    """Others wait for one to end."""
    store = PostgresCheckpointStore(postgres.dsn, transactions_max=1)
    async with store.transactions() as transactions:
        first = transactions.begin(is_blocking=False, idle_max=IDLE_MAX)
        second = transactions.begin(is_blocking=False, idle_max=IDLE_MAX)
        await first.__aenter__()
        waiting = asyncio.ensure_future(second.__aenter__())
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        await first.__aexit__(None, None, None)
        await waiting
        await second.__aexit__(None, None, None)


async def test_a_task_that_outlives_a_block_that_failed_writes_nothing(postgres):
    """Its rows would be stored without a position, and again when the event is tried again."""
    kept: list[Any] = []

    async def fail(transactions):
        async with transactions.begin(is_blocking=False, idle_max=IDLE_MAX) as transaction:
            kept.append(transaction.db)
            raise RuntimeError

    async with PostgresCheckpointStore(postgres.dsn).transactions() as transactions:
        with pytest.raises(RuntimeError):
            await fail(transactions)
        with pytest.raises(psycopg.OperationalError, match="closed"):
            await kept[0].execute("SELECT 1")
