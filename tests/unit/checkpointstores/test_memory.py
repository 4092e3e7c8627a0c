"""The memory store's own settings. The contract has the rest."""

import asyncio
import os
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from checkpointstores import memory
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup, OwnershipClaim, WriteOutcome

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
PARTITIONS = 50


async def test_all_times_come_from_the_accounts_clock():
    """A simulation passes its own clock, and moves it."""
    times = [datetime(2026, 1, 1, tzinfo=UTC)]
    async with MemoryCheckpointStore(now=lambda: times[-1]) as store:
        [won] = await store.claim_ownership(GROUP, [CLAIM])
        times.append(times[0] + timedelta(days=1))
        snapshot = await store.list_ownership(GROUP)

    assert won.ownership is not None
    assert won.ownership.last_modified == times[0]
    assert snapshot.as_of == times[1]


async def test_a_change_of_the_wall_clock_does_not_change_the_accounts_time(monkeypatch):
    """Otherwise it would change the age of every lease."""

    class SetForward(datetime):
        """A wall clock that was moved ahead."""

        @classmethod
        def now(cls, tz=None):
            """Return a time ten minutes ahead."""
            return datetime.now(tz) + timedelta(minutes=10)

    async with MemoryCheckpointStore() as store:
        [won] = await store.claim_ownership(GROUP, [CLAIM])
        monkeypatch.setattr(memory, "datetime", SetForward)
        snapshot = await store.list_ownership(GROUP)

    assert won.ownership is not None
    assert snapshot.as_of is not None
    assert snapshot.as_of - won.ownership.last_modified < timedelta(minutes=5)


def test_a_store_of_an_account_takes_no_clock_of_its_own():
    """The account has one."""
    with pytest.raises(ConfigurationError, match="give account or now"):
        MemoryCheckpointStore(MemoryAccount(), now=lambda: datetime.now(UTC))


def test_the_accounts_time_begins_at_the_wall_clocks():
    """Its records are shown beside those of other stores."""
    assert abs(MemoryAccount().now() - datetime.now(UTC)) < timedelta(minutes=1)


async def test_each_call_lets_other_tasks_run():
    """As a call over a network does: what relies on their not running fails in tests already."""
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    async with MemoryCheckpointStore() as store:
        task = asyncio.ensure_future(other())
        await store.list_ownership(GROUP)
        ran.append("listed")
        await task

    assert ran == ["other", "listed"]


async def test_a_store_that_is_not_open_raises():
    """Like stores that have a connection to close."""
    store = MemoryCheckpointStore()
    with pytest.raises(RuntimeError, match="not open"):
        await store.list_ownership(GROUP)
    await store.open()
    await store.close()
    with pytest.raises(RuntimeError, match="not open"):
        await store.list_ownership(GROUP)


def test_of_two_threads_that_claim_at_once_one_wins():
    """Each processor's store has a thread of its own. No two writes get the same ETag."""

    def now() -> datetime:
        for _ in range(100):
            os.sched_yield()  # Let other threads run in the middle of a write.
        return datetime.now(UTC)

    account = MemoryAccount(now=now)
    outcomes: list[WriteOutcome] = []
    etags: list[str] = []

    async def claim_all(barrier):
        async with MemoryCheckpointStore(account) as store:
            for number in range(PARTITIONS):
                barrier.wait(20)
                claim = replace(CLAIM, partition_id=str(number))
                for result in await store.claim_ownership(GROUP, [claim]):
                    outcomes.append(result.outcome)
                    if result.outcome is WriteOutcome.WON and result.ownership is not None:
                        etags.append(result.ownership.etag)

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=lambda: asyncio.run(claim_all(barrier))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count(WriteOutcome.WON) == outcomes.count(WriteOutcome.LOST) == PARTITIONS
    assert len(set(etags)) == PARTITIONS
