"""The PostgreSQL store tells processors at once what others changed, and nothing else."""

import asyncio
import logging
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg

from checkpointstores.postgres import PostgresCheckpointStore
from eventproc.models import ConsumerGroup, GroupRecord, Member, MemberStatus, OwnershipClaim

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
MARKS = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="marks")
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

    async def reaches(self, count):
        """Return when *count* changes were told since the start."""
        while self.count < count:
            self._news.clear()
            await self._news.wait()


class Listening:
    """A store that listens for changes, and another one, which makes them."""

    def __init__(self, mine, other):
        self.mine = mine
        self.other = other
        self.told = Listener()
        self.marks = Listener()

    async def count(self):
        """Return how many changes were told, when all that was done before has been told.

        The server sends notifications in the order of the commits, so one of another group on the
        same connection comes after them.
        """
        await self.mark()
        return self.told.count

    async def mark(self):
        """Write a record of the other group, and return when its notification is there."""
        wanted = self.marks.count + 1
        await self.other.write_record(MARKS, GroupRecord(name=uuid.uuid4().hex, content=b""))
        await self.marks.reaches(wanted)


@asynccontextmanager
async def listening(server):
    """Yield both stores. Once, when the connection is there, a change has been told."""
    schema = f"s{uuid.uuid4().hex}"
    async with (
        PostgresCheckpointStore(server.dsn, schema=schema, create_schema=True) as mine,
        PostgresCheckpointStore(server.dsn, schema=schema) as other,
    ):
        both = Listening(mine, other)
        watching = [
            asyncio.create_task(mine.watch(GROUP, ME, both.told.tell)),
            asyncio.create_task(mine.watch(MARKS, ME, both.marks.tell)),
        ]
        await both.told.reaches(1)
        await both.marks.reaches(1)
        try:
            yield both
        finally:
            for task in watching:
                task.cancel()
            await asyncio.wait(watching)


async def own(store, owner_id, former=None):
    """Write an ownership record, and return it."""
    claim = OwnershipClaim(
        partition_id="0", owner_id=owner_id, expected_etag=former.etag if former else None
    )
    [result] = await store.claim_ownership(GROUP, [claim])
    return result.ownership


async def test_a_member_that_comes_changes_or_leaves_is_noticed(postgres):
    """A renewal is not told: it changes nothing for others."""
    async with listening(postgres) as both:
        member = Member(owner_id="other", incarnation="1")
        written = (await both.other.announce_member(GROUP, member)).member
        assert await both.count() == 2
        renewed = (await both.other.announce_member(GROUP, written)).member
        assert await both.count() == 2
        changed = replace(renewed, status=MemberStatus.LEAVING)
        written = (await both.other.announce_member(GROUP, changed)).member
        assert await both.count() == 3
        await both.other.withdraw_member(GROUP, written)
        assert await both.count() == 4


async def test_a_release_and_a_hand_over_are_noticed(postgres):
    """Claims and renewals of others are not."""
    async with listening(postgres) as both:
        first = await own(both.other, "other")
        renewed = await own(both.other, "other", first)
        assert await both.count() == 1
        released = await own(both.other, None, renewed)
        assert await both.count() == 2
        claimed = await own(both.other, "third", released)
        assert await both.count() == 2
        mine = await own(both.other, ME, claimed)
        assert await both.count() == 3
        await own(both.other, "other", mine)
        assert await both.count() == 4


async def test_what_this_processor_writes_is_not_noticed(postgres):
    """It knows that already."""
    async with listening(postgres) as both:
        await both.mine.announce_member(GROUP, Member(owner_id=ME, incarnation="1"))
        await own(both.mine, None, await own(both.mine, ME))

        assert await both.count() == 1


async def test_groups_of_one_store_share_its_connection(postgres):
    """A group is told of its own changes only, and a watcher that ends does not end the others."""
    another, other_listener = replace(GROUP, name="another"), Listener()
    async with listening(postgres) as both:
        watching = asyncio.create_task(both.mine.watch(another, ME, other_listener.tell))
        await asyncio.sleep(0)  # It is registered.
        await both.other.announce_member(another, Member(owner_id="other", incarnation="1"))
        await other_listener.reaches(1)
        watching.cancel()
        await asyncio.wait([watching])

        assert await both.count() == 1


async def test_a_store_listens_again_after_its_only_processor_was_stopped(postgres):
    """A processor may be stopped and started again with the same store."""
    schema, listener = f"s{uuid.uuid4().hex}", Listener()
    async with (
        PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True) as mine,
        PostgresCheckpointStore(postgres.dsn, schema=schema) as other,
        asyncio.timeout(30),
    ):
        for count in (1, 3):
            watching = asyncio.create_task(mine.watch(GROUP, ME, listener.tell))
            await listener.reaches(count)
            await other.announce_member(GROUP, Member(owner_id=f"{count}", incarnation="1"))
            await listener.reaches(count + 1)
            watching.cancel()
            await asyncio.wait([watching])


async def test_a_lost_connection_is_made_again(postgres, caplog):
    """What happened meanwhile was not heard, so the processor reads the group. The log says when
    the connection was lost, and when it was there again."""
    caplog.set_level(logging.INFO)

    def end_listeners():
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            )

    async with listening(postgres) as both:
        await asyncio.to_thread(end_listeners)
        await both.told.reaches(2)
        await both.marks.reaches(2)

        assert await both.count() == 2
    logged = [r.event for r in caplog.records if "store_notifications" in r.getMessage()]
    assert logged == ["store_notifications_failed", "store_notifications_recovered"]
