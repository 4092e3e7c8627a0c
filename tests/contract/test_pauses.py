"""Every store keeps an operator's pauses: read as written, and no two operators undo each other."""

import asyncio
from datetime import timedelta

from eventproc._core.ownership.pauses import NO_PAUSES, PAUSES_RECORD, REASON_MAX
from eventproc.admin import pause_group, read_pauses, resume_group
from eventproc.models import ConsumerGroup

GROUP = ConsumerGroup(fully_qualified_namespace="hub.example", eventhub_name="orders")
EXPIRATION = timedelta(seconds=60)
OPERATORS = 4


async def pause(store, *partition_ids, reason="INC-1"):
    """Pause these partitions, or the whole group."""
    return await pause_group(
        store, GROUP, partition_ids or None, reason=reason, expiration=EXPIRATION
    )


async def etag_of(store):
    """Return what tells a processor that the pauses have changed."""
    return (await store.list_members(GROUP)).record_etags.get(PAUSES_RECORD)


async def test_pauses_are_read_as_they_were_written(store_kind):
    """By another process, with a reason of any characters, and with a new ETag for each change."""
    async with store_kind() as kind, kind.make_store() as store, kind.make_store() as other:
        assert await read_pauses(other, GROUP) == NO_PAUSES
        reason = ("☂ naïve\n'\"\\ " * REASON_MAX)[:REASON_MAX]
        written, etags = [], [await etag_of(other)]
        for change in (
            pause(store, "0", reason=reason),
            pause(store, reason="the whole group"),
            resume_group(store, GROUP),
            pause(store, "1", "2"),
            resume_group(store, GROUP, ["1"]),
        ):
            written.append(await change)
            etags.append(await etag_of(other))

            assert await read_pauses(other, GROUP) == written[-1]

    assert written[0].by_partition["0"].reason == reason
    assert written[1].of("7") is not None
    assert written[2] == NO_PAUSES
    assert list(written[4].by_partition) == ["2"]
    assert len(set(etags)) == len(etags)


async def test_a_change_of_nothing_writes_nothing(store_kind):
    """So no processor reads the record again."""
    async with store_kind() as kind, kind.make_store() as store:
        await resume_group(store, GROUP)
        assert await etag_of(store) is None

        await pause(store, "0")
        etag = await etag_of(store)
        await pause(store, "0")
        await resume_group(store, GROUP, ["1"])

        assert await etag_of(store) == etag


async def test_operators_at_the_same_time_lose_no_pause_and_no_resume(store_kind):
    """Each writes on the ETag that it read, and begins again if another one was first."""
    async with store_kind() as kind, kind.make_store() as first, kind.make_store() as second:
        stores, numbers = [first, second] * (OPERATORS // 2), range(OPERATORS)
        await asyncio.gather(*[pause(stores[n], f"{n}") for n in numbers])
        paused = await read_pauses(second, GROUP)
        resumes = [resume_group(stores[n], GROUP, [f"{n}"]) for n in numbers if n % 2]
        await asyncio.gather(*resumes, pause(first, "late"))
        left = await read_pauses(first, GROUP)

    assert set(paused.by_partition) == {"0", "1", "2", "3"}
    assert set(left.by_partition) == {"0", "2", "late"}


async def test_a_pause_whose_answer_was_lost_is_one_pause(store_kind):
    """Its time is that of the first attempt, and no other operator's pause is lost for it."""
    async with store_kind() as kind, kind.make_store() as store, kind.make_store() as other:
        if kind.lose_answers is None:
            return  # This store has no connection that could lose them.
        await pause(other, "1")
        async with kind.lose_answers(1):
            await pause(store, "0")
        found = await read_pauses(other, GROUP)

    assert set(found.by_partition) == {"0", "1"}
