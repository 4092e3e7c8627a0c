"""What is read of a group: backlogs, owners, and the members that count."""

from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._core.ownership.pauses import PAUSES_RECORD
from eventproc._group.autoscaler import read_group
from eventproc.admin import pause_group
from eventproc.models import (
    CheckpointUpdate,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberStatus,
    OwnershipClaim,
    PartitionProperties,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from tests.unit.eventproc._command.group.views import NOW

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="orders")
EXPIRATION = timedelta(seconds=60)


class Reporting(MemoryEventSource):
    """A source of a hub with one partition, about which the hub reports this."""

    def __init__(self, *, beginning, last, is_empty):
        super().__init__(MemoryHub(1))
        self._reported = PartitionProperties(
            partition_id="0",
            beginning_sequence_number=beginning,
            last_enqueued_sequence_number=last,
            last_enqueued_offset=str(last),
            last_enqueued_time=NOW,
            is_empty=is_empty,
        )

    async def partition_properties(self, partition_id):
        """Return what the hub reports."""
        return self._reported


async def reading_of(store, source=None):
    """Return a reading of the group; its hub has two partitions unless a source is given."""
    async with source or MemoryEventSource(MemoryHub(2)) as opened:
        return await read_group(store, GROUP, opened, expiration=EXPIRATION, clock=lambda: 5.0)


async def join(store, owner_id, status=MemberStatus.ACTIVE, *, owns=()):
    """Write the records of a member that owns these partitions."""
    member = Member(owner_id=owner_id, incarnation="1", status=status)
    await store.announce_member(GROUP, member)
    claims = [OwnershipClaim(partition_id=p, owner_id=owner_id, expected_etag=None) for p in owns]
    await store.claim_ownership(GROUP, claims)


async def test_members_that_leave_do_not_count():
    """Not even while they still own partitions, which the others are about to get."""
    async with MemoryCheckpointStore() as store:
        await join(store, "staying")
        await join(store, "leaving", MemberStatus.LEAVING, owns=["0"])
        await join(store, "left", MemberStatus.LEAVING)
        found = await reading_of(store)

    assert found.member_ids == {"staying"}
    assert found.partitions["0"].owner_id == "leaving"


async def test_members_on_standby_count_while_they_own_partitions():
    """A member without a record counts as well: it is one of Azure's processors."""
    async with MemoryCheckpointStore() as store:
        await join(store, "waiting", MemberStatus.STANDBY)
        await join(store, "replacing", MemberStatus.STANDBY, owns=["0"])
        claim = OwnershipClaim(partition_id="1", owner_id="azure", expected_etag=None)
        await store.claim_ownership(GROUP, [claim])
        found = await reading_of(store)

    assert found.member_ids == {"replacing", "azure"}


async def test_what_has_expired_does_not_count():
    """Neither a member nor an owner that did not renew."""
    now = NOW
    async with MemoryCheckpointStore(MemoryAccount(now=lambda: now)) as store:
        await join(store, "dead", owns=["0"])
        now += EXPIRATION + timedelta(seconds=1)
        found = await reading_of(store)

    assert found.member_ids == frozenset()
    assert found.partitions["0"].owner_id is None


@pytest.mark.parametrize(
    ("beginning", "last", "is_empty", "backlog"),
    [(3, 9, True, 0), (3, 9, False, 7), (0, -1, True, 0)],
)
async def test_an_empty_partition_has_no_backlog(beginning, last, is_empty, backlog):
    """A hub may report an older first number for it; without a checkpoint that would count."""
    source = Reporting(beginning=beginning, last=last, is_empty=is_empty)
    async with MemoryCheckpointStore() as store:
        found = await reading_of(store, source)

    assert found.backlog == backlog


async def test_a_backlog_counts_from_the_checkpoint():
    """As soon as there is one."""
    async with MemoryCheckpointStore() as store:
        update = CheckpointUpdate(
            partition_id="0", offset="7", sequence_number=7, replaces=None, writer="a"
        )
        await store.update_checkpoint(GROUP, update)
        found = await reading_of(store, Reporting(beginning=3, last=9, is_empty=False))

    assert (found.at_s, found.backlog) == (5.0, 2)


async def test_a_checkpoint_of_a_former_hub_counts_as_none():
    """It lies beyond the end of this one, so all retained events are backlog."""
    async with MemoryCheckpointStore() as store:
        update = CheckpointUpdate(
            partition_id="0", offset="50", sequence_number=50, replaces=None, writer="a"
        )
        await store.update_checkpoint(GROUP, update)
        found = await reading_of(store, Reporting(beginning=3, last=9, is_empty=False))

    assert found.backlog == 7


async def test_a_partition_that_is_paused_has_no_backlog():
    """If the record of pauses cannot be read, all are: processors take it that way, too."""
    async with MemoryCheckpointStore() as store:
        await pause_group(store, GROUP, ["1"], reason="x", expiration=EXPIRATION)
        one = await reading_of(store)
        etag = (await store.list_members(GROUP)).record_etags[PAUSES_RECORD]
        await store.write_record(GROUP, GroupRecord(name=PAUSES_RECORD, content=b"?", etag=etag))
        every = await reading_of(store)

    assert [p.is_paused for p in one.partitions.values()] == [False, True]
    assert [p.is_paused for p in every.partitions.values()] == [True, True]
