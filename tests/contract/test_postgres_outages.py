"""The PostgreSQL store while its server crashes, freezes, or cuts connections."""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import asynccontextmanager
from datetime import timedelta

import psycopg
import pytest

from checkpointstores.postgres import PostgresCheckpointStore
from eventproc.errors import StoreUnavailableError
from eventproc.models import ConsumerGroup, WriteOutcome
from tests.servers.postgres_server import PostgresServer
from tests.unit.checkpointstores.updates import update_of

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")


@pytest.fixture(name="server")
def _server() -> Iterator[PostgresServer]:
    """Yield a server for one test, which may stop and pause it."""
    with PostgresServer() as server:
        yield server


@asynccontextmanager
async def opened(server, *, limit=timedelta(seconds=5)):
    """Yield a store in a schema of its own."""
    schema = f"s{uuid.uuid4().hex}"
    async with PostgresCheckpointStore(
        server.dsn, schema=schema, create_schema=True, timeout=limit
    ) as store:
        yield store


async def test_writes_continue_after_a_crash_of_the_server(server, caplog):
    """What was won before the crash is there, and the store connects again by itself. Its log has
    the beginning and the end."""
    caplog.set_level("INFO")
    async with opened(server) as store:
        first = (await store.update_checkpoint(GROUP, update_of(1, None))).checkpoint
        await asyncio.to_thread(server.kill)
        unknown = await store.update_checkpoint(GROUP, update_of(2, first))
        await asyncio.to_thread(server.start)
        found = await store.read_checkpoint(GROUP, "0")
        second = await store.update_checkpoint(GROUP, update_of(2, found))

    assert unknown.outcome is WriteOutcome.UNKNOWN
    assert found == first
    assert second.outcome is WriteOutcome.WON
    events = [getattr(record, "event", "") for record in caplog.records]
    assert [event for event in events if event.startswith("store_write")] == [
        "store_write_unknown",
        "store_write_known_again",
    ]


async def test_a_frozen_server_delays_no_call_beyond_its_attempts(server):
    """Calls that wait for the connection give up, too; after the freeze they succeed."""
    async with opened(server, limit=timedelta(seconds=1)) as store:
        first = (await store.update_checkpoint(GROUP, update_of(1, None))).checkpoint
        server.pause()
        results = await asyncio.gather(
            *(store.update_checkpoint(GROUP, update_of(2, first)) for _ in range(3))
        )
        server.resume()
        found = await store.read_checkpoint(GROUP, "0")
        second = await store.update_checkpoint(GROUP, update_of(3, found))

    assert [result.outcome for result in results] == [WriteOutcome.UNKNOWN] * 3
    assert found.sequence_number in {1, 2}
    assert second.outcome is WriteOutcome.WON


async def test_a_commit_without_an_answer_has_an_unknown_outcome(server):
    """It may have happened, so it is no error of the handler; the next owner finds out."""
    async with (
        opened(server, limit=timedelta(seconds=1)) as store,
        store.transactions() as transactions,
    ):
        begun = transactions.begin(is_blocking=False, idle_max=timedelta(seconds=30))
        async with begun as transaction:
            server.pause()
            result = await transaction.commit(GROUP, update_of(1, None))
            server.resume()

    assert result.outcome is WriteOutcome.UNKNOWN


async def test_a_call_that_is_cancelled_ends_at_once(server):
    """The stop of a processor does not wait for a frozen server."""
    async with opened(server, limit=timedelta(seconds=60)) as store:
        server.pause()
        call = asyncio.create_task(store.list_members(GROUP))
        while not store._session._turn.locked():  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        call.cancel()
        async with asyncio.timeout(30):
            await asyncio.wait([call])
        server.resume()
        snapshot = await store.list_members(GROUP)

    assert call.cancelled()
    assert snapshot.members == ()


async def test_a_statement_that_waits_for_a_lock_ends_in_time(postgres):
    """The server ends it, too: an attempt that we gave up must not succeed later."""
    async with opened(postgres, limit=timedelta(seconds=1)) as store:
        first = (await store.update_checkpoint(GROUP, update_of(1, None))).checkpoint
        blocker = await psycopg.AsyncConnection.connect(postgres.dsn)
        await blocker.execute(f'LOCK TABLE "{store._schema}".checkpoint')
        results = await asyncio.gather(
            *(store.update_checkpoint(GROUP, update_of(2, first)) for _ in range(3))
        )
        with pytest.raises(StoreUnavailableError):
            await store.read_checkpoint(GROUP, "0")
        await blocker.rollback()
        await blocker.close()
        found = await store.read_checkpoint(GROUP, "0")

    assert [result.outcome for result in results] == [WriteOutcome.UNKNOWN] * 3
    assert found == first


async def test_a_cut_connection_is_made_again(postgres):
    """An operator, or a pooler, may end sessions at any time."""
    async with opened(postgres) as store:
        first = (await store.update_checkpoint(GROUP, update_of(1, None))).checkpoint
        for number in range(2, 5):
            pid = store._session.pid
            async with await psycopg.AsyncConnection.connect(postgres.dsn) as operator:
                await operator.execute("SELECT pg_terminate_backend(%s)", [pid])
            result = await store.update_checkpoint(GROUP, update_of(number, first))

            assert result.outcome is WriteOutcome.WON

            first = result.checkpoint
