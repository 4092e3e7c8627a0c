"""A start that fails after it wrote the member record deletes that record again.

The others would count it as a member for an ``ownership_expiration``, and hand partitions over to
a processor that does not run.
"""

import asyncio
from contextlib import suppress

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig, StoreUnavailableError
from eventproc.ports import HealthReporter
from tests.scenarios.group_setup import Noting, Setup, seconds


class UnreadableStore(MemoryCheckpointStore):
    """Does not list checkpoints: a start reads them last, after it wrote its member record."""

    is_slow = False

    async def list_checkpoints(self, group):
        """Fail at once or, as a store that is away, after a long time."""
        if self.is_slow:
            await asyncio.sleep(3600)
        raise StoreUnavailableError("no answer")


def failing(setup: Setup, owner_id: str, *, make=UnreadableStore, is_slow=False, health=None):
    """A processor that cannot start."""
    store = make(setup.account)
    store.is_slow = is_slow
    return EventProcessor(
        source=setup.make_source(),
        store=store,
        handler=lambda: Noting(setup),
        owner_id=owner_id,
        config=EventProcessorConfig(uses_store_thread=False),
        health=health,
    )


def members(setup: Setup) -> set[str]:
    """The owner ids that have a member record."""
    return set(setup.account.records(setup.group).member_by_owner)


async def test_a_processor_whose_start_failed_is_no_member_and_is_given_nothing():
    """The start raises the store's error, and the partitions stay where they are."""
    setup = Setup(partition_count=4)
    async with setup.processor(owner_id="a"):
        await seconds(30)
        with pytest.raises(StoreUnavailableError):
            await failing(setup, "b").start()
        left = members(setup)
        owners = set[str | None]()
        for _ in range(60):
            await seconds(1)
            owners |= set(setup.owners().values())

    assert (left, owners) == ({"a"}, {"a"})


async def test_a_start_that_is_cancelled_leaves_no_member_record():
    """As by SIGTERM, while the store does not answer."""
    setup = Setup()
    starting = asyncio.create_task(failing(setup, "b", is_slow=True).start())
    await seconds(5)
    before = members(setup)
    starting.cancel()
    with suppress(asyncio.CancelledError):
        await starting

    assert (before, members(setup)) == ({"b"}, set())


class SilentStore(UnreadableStore):
    """Answers no request to delete a member record either."""

    async def withdraw_member(self, group, member):
        """Wait for ever."""
        await asyncio.sleep(1e9)
        raise AssertionError


async def test_a_store_that_does_not_answer_delays_the_error_of_a_start_by_little():
    """By a fifth of ``shutdown_timeout``; the record then expires."""
    setup = Setup()
    processor = failing(setup, "b", make=SilentStore)
    with pytest.raises(StoreUnavailableError):
        await processor.start()

    assert setup.now_s < 30 / 5 + 1
    assert members(setup) == {"b"}


class NotedReports(HealthReporter):
    """Notes the processors that it reports on."""

    def __init__(self):
        self.begun = []
        self.shown = set()

    async def begin(self, member):
        """Note that one is shown."""
        self.begun.append(member.owner_id)
        self.shown.add(member.owner_id)

    async def end(self, member):
        """Note that it is shown no more."""
        self.shown.discard(member.owner_id)


@pytest.mark.parametrize("is_stopped", [False, True], ids=["failed", "stopped"])
async def test_the_health_of_a_processor_whose_start_ended_is_not_reported_any_more(is_stopped):
    """A server would keep its port, and answer for a processor that is not there."""
    health = NotedReports()
    processor = failing(Setup(), "b", is_slow=is_stopped, health=health)
    starting = asyncio.create_task(processor.start())
    await seconds(5)
    await processor.stop()
    with suppress(StoreUnavailableError):
        await starting

    assert (health.begun, health.shown) == (["b"], set())
