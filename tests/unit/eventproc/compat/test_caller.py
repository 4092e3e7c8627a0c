"""The thread that called ``receive`` makes the callbacks, a slice of time for each partition."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from eventproc.compat._caller import Delivery, LoopCaller, ThreadCaller
from eventproc.compat._partition import Partition
from tests.unit.eventproc._core.events import events


def delivery(function: Any, partition_id: str, count: int) -> Delivery:
    store: Any = None
    current: Any = SimpleNamespace(is_ending=False)
    partition = Partition(partition_id, store)
    return Delivery(function, partition_id, partition, events(range(count)), current)


async def called(*counts: int, slice_s: float) -> list[tuple[str, int]]:
    """Return partition and number of each call, for partitions with so many events each."""
    calls: list[tuple[str, int]] = []
    caller, whole = ThreadCaller(slice_s=slice_s), Future[None]()
    working = asyncio.create_task(asyncio.to_thread(caller.work, whole))

    def note(partition_id: str, event: Any) -> None:
        calls.append((partition_id, event.sequence_number))

    deliveries = [delivery(note, str(n), count) for n, count in enumerate(counts)]
    await asyncio.gather(*map(caller.each, deliveries))
    whole.set_result(None)
    await working
    return calls


async def test_partitions_take_turns_after_each_slice_and_every_event_comes_once():
    """Each event takes longer than a slice here, as with a slow callback."""
    calls = await called(3, 2, slice_s=-1)

    assert calls == [("0", 0), ("1", 0), ("0", 1), ("1", 1), ("0", 2)]


async def test_a_partition_is_handled_to_its_end_within_a_slice():
    assert await called(2, 2, slice_s=60) == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]


async def test_a_callback_that_closes_its_client_is_the_last_one_for_an_event():
    caller, seen = LoopCaller(), list[int]()

    async def close_at_the_second(_: object, event: Any) -> None:
        seen.append(event.sequence_number)
        caller.is_over = len(seen) == 2

    await caller.each(delivery(close_at_the_second, "0", 4))

    assert seen == [0, 1]
