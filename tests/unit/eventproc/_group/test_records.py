"""Records of a group are read when they changed, and again while they could not be read."""

from datetime import UTC, datetime

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._base.logs import get_logger
from eventproc._core.ownership.pauses import NO_PAUSES, PAUSES_RECORD
from eventproc._core.placement.published_plan import PLAN_RECORD
from eventproc._group.records import PausesReader, PlanStore
from eventproc.errors import StoreUnavailableError
from eventproc.models import ConsumerGroup, GroupRecord

GROUP = ConsumerGroup(fully_qualified_namespace="hub.example", eventhub_name="orders")
NOW = datetime(2026, 1, 31, tzinfo=UTC)


class Counting(MemoryCheckpointStore):
    """Counts how often the record is read."""

    reads = 0

    async def read_record(self, group, name):
        """Count, and read."""
        self.reads += 1
        return await super().read_record(group, name)


async def write(store, content, etag=None, name=PAUSES_RECORD):
    """Write the record, and return its ETag."""
    record = GroupRecord(name=name, content=content, etag=etag)
    return (await store.write_record(GROUP, record)).record.etag


@pytest.mark.parametrize(
    ("make", "name", "of_listing"),
    [(PausesReader, PAUSES_RECORD, [NOW]), (PlanStore, PLAN_RECORD, [])],
)
async def test_a_record_is_read_once_for_each_version_that_can_be_read(
    make, name, of_listing, caplog
):
    """A group at rest pays nothing for it. That it cannot be read, and that it can, is logged."""
    caplog.set_level("INFO")
    async with Counting(MemoryAccount()) as store:
        reader = make(store, GROUP, get_logger("test"))
        etag = None
        await reader.read(etag, *of_listing)
        for content in (b'{"version": 2}', NO_PAUSES.as_bytes()):
            etag = await write(store, content, etag, name)
            for _ in range(2):
                await reader.read(etag, *of_listing)

    logged = [vars(record)["event"] for record in caplog.records]
    assert [event for event in logged if event.endswith("readable")] == [
        f"{name}_unreadable",
        f"{name}_readable",
    ]
    assert store.reads == 3


async def test_a_damaged_record_pauses_the_group_until_it_is_away():
    """Also if it is the first one that was read: then the reader knows of no version."""
    async with Counting(MemoryAccount()) as store:
        reader = PausesReader(store, GROUP, get_logger("test"))
        damaged = await reader.read(await write(store, b"?"), NOW)
        del store.account.records(GROUP).record_by_name[PAUSES_RECORD]
        after = await reader.read(None, NOW)

    assert damaged.group is not None
    assert damaged.group.since == NOW
    assert after == NO_PAUSES


@pytest.mark.parametrize("is_first", [True, False])
async def test_an_old_listing_does_not_end_a_pause(is_first):
    """It shows no record, or an earlier version of it: the record itself is read."""
    paused = NO_PAUSES.paused(["0"], NOW, "a wrong price")
    async with MemoryCheckpointStore(MemoryAccount()) as store:
        reader = PausesReader(store, GROUP, get_logger("test"))
        old = None if is_first else await write(store, NO_PAUSES.as_bytes())
        await reader.read(old, NOW)
        await reader.read(await write(store, paused.as_bytes(), old), NOW)

        assert await reader.read(old, NOW) == paused


async def test_a_pause_is_followed_after_a_read_without_an_answer():
    """The version that was not read is not taken for the one that is known."""
    paused = NO_PAUSES.paused(["0"], NOW, "a wrong price")

    class Unanswered(MemoryCheckpointStore):
        is_out = True

        async def read_record(self, group, name):
            if self.is_out:
                raise StoreUnavailableError("no answer")
            return await super().read_record(group, name)

    async with Unanswered(MemoryAccount()) as store:
        reader = PausesReader(store, GROUP, get_logger("test"))
        etag = await write(store, paused.as_bytes())
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                await reader.read(etag, NOW)
        store.is_out = False

        assert await reader.read(etag, NOW) == paused
