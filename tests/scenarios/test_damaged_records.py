"""A record of a group that is damaged on purpose ends no processor."""

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._core.ownership.pauses import PAUSES_RECORD
from eventproc._core.placement.published_plan import PLAN_RECORD
from eventproc.admin import resume_group
from eventproc.models import GroupRecord, Member
from eventproc.placements import Even, Published, Weighted
from tests.scenarios.group_setup import Setup, seconds

DEEP = b"[" * 100_000


@pytest.mark.parametrize("name", [PLAN_RECORD, PAUSES_RECORD])
async def test_a_group_record_that_is_nested_endlessly_ends_no_processor(name):
    """An operator's command mends it: a group with unreadable pauses counts as paused."""
    setup = Setup()
    async with (
        MemoryCheckpointStore(setup.account) as store,
        setup.processor(placement=Published(Even())),
    ):
        await seconds(60)
        found = await store.read_record(setup.group, name)
        etag = found.etag if found else None
        await store.write_record(setup.group, GroupRecord(name=name, content=DEEP, etag=etag))
        await seconds(60)
        await resume_group(store, setup.group, None)
        setup.publish(3)
        await seconds(60)

    assert setup.numbers() == [0, 1, 2]


async def test_a_member_with_an_impossible_weight_ends_no_processor():
    """Its weight counts as 1."""
    setup = Setup(partition_count=4)
    async with (
        MemoryCheckpointStore(setup.account) as store,
        setup.processor(placement=Weighted()),
    ):
        await seconds(30)
        await store.announce_member(
            setup.group,
            Member(owner_id="b", incarnation="1", weight=float("nan"), placement="Weighted"),
        )
        await seconds(30)
        for partition_id in "0123":
            setup.publish(1, partition_id)
        await seconds(120)

    assert [setup.numbers(partition_id) for partition_id in "0123"] == [[0]] * 4
