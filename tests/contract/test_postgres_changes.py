"""The PostgreSQL store tells processors at once what others changed, and nothing else."""

import asyncio
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest

from checkpointstores.postgres import PostgresCheckpointStore
from eventproc.models import ConsumerGroup, GroupRecord, Member, MemberStatus, OwnershipClaim

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
ME = "me"


class Listener:
    """Counts the changes of which it is told."""

    def __init__(self):
        self.count = 0
        self._news = asyncio.Event()

    def tell(self):
        """Count one change."""
        self.count += 1
        self._news.set()

    async def next(self):
        """Return when something was told."""
        await self._news.wait()
        self._news.clear()


@asynccontextmanager
async def listening(server):
    """Yield a store that another processor uses, the listening one, and what it was told."""
    schema, listener = f"s{uuid.uuid4().hex}", Listener()
    async with (
        PostgresCheckpointStore(server.dsn, schema=schema, create_schema=True) as mine,
        PostgresCheckpointStore(server.dsn, schema=schema) as other,
    ):
        watching = asyncio.create_task(mine.watch(GROUP, ME, listener.tell))
        await listener.next()  # The connection is there.
        try:
            yield mine, other, listener
        finally:
            watching.cancel()
            await asyncio.wait([watching])


async def own(store, owner_id, former=None):
    """Write an ownership record, and return it."""
    claim = OwnershipClaim(
        partition_id="0", owner_id=owner_id, expected_etag=former.etag if former else None
    )
    [result] = await store.claim_ownership(GROUP, [claim])
    return result.ownership


async def count_until_now(other, listener):
    """Return how often it was told, when all that was done before has been told."""
    before = listener.count
    await other.write_record(GROUP, GroupRecord(name=uuid.uuid4().hex, content=b""))
    while listener.count == before:
        await listener.next()
    await asyncio.sleep(0)
    return listener.count - 1


@pytest.mark.parametrize("status", [MemberStatus.LEAVING, MemberStatus.DEAD])
async def test_a_member_that_comes_changes_or_leaves_is_noticed(postgres, status):
    """A renewal is not told: it changes nothing for others."""
    async with listening(postgres) as (_, other, listener):
        member = Member(owner_id="other", incarnation="1")
        written = (await other.announce_member(GROUP, member)).member
        await listener.next()
        renewed = (await other.announce_member(GROUP, written)).member
        assert await count_until_now(other, listener) == 2  # connected, announced
        changed = (await other.announce_member(GROUP, replace(renewed, status=status))).member
        await listener.next()
        await other.withdraw_member(GROUP, changed)
        await listener.next()

        assert listener.count == 5


async def test_a_release_and_a_hand_over_are_noticed(postgres):
    """Claims and renewals of others are not."""
    async with listening(postgres) as (_, other, listener):
        first = await own(other, "other")
        renewed = await own(other, "other", first)
        assert await count_until_now(other, listener) == 1
        released = await own(other, None, renewed)
        await listener.next()
        claimed = await own(other, "third", released)
        assert await count_until_now(other, listener) == 3
        mine = await own(other, ME, claimed)
        await listener.next()
        stolen = await own(other, "other", mine)
        await listener.next()

        assert stolen.owner_id == "other"
        assert listener.count == 6


async def test_what_this_processor_writes_is_not_noticed(postgres):
    """It knows that already."""
    async with listening(postgres) as (mine, other, listener):
        await mine.announce_member(GROUP, Member(owner_id=ME, incarnation="1"))
        await own(mine, None, await own(mine, ME))

        assert await count_until_now(other, listener) == 1


async def test_other_groups_are_not_noticed(postgres):
    """They may be in the same tables."""
    async with listening(postgres) as (_, other, listener):
        member = Member(owner_id="other", incarnation="1")
        await other.announce_member(replace(GROUP, name="another"), member)

        assert await count_until_now(other, listener) == 1


async def test_groups_of_one_store_share_its_connection(postgres):
    """Each watcher is told of its own group, and one that ends does not end the others."""
    another, other_listener = replace(GROUP, name="another"), Listener()
    async with listening(postgres) as (mine, other, listener):
        watching = asyncio.create_task(mine.watch(another, ME, other_listener.tell))
        await asyncio.sleep(0)  # It is registered.
        await other.announce_member(another, Member(owner_id="other", incarnation="1"))
        await other_listener.next()
        watching.cancel()
        await asyncio.wait([watching])

        assert await count_until_now(other, listener) == 1


async def test_a_lost_connection_is_made_again(postgres):
    """What happened meanwhile was not heard, so the processor reads the group."""

    def end_listeners():
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            )

    async with listening(postgres) as (_, other, listener):
        await asyncio.to_thread(end_listeners)
        await listener.next()

        assert await count_until_now(other, listener) == 2
