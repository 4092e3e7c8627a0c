"""Programs that do something unusual, in the form of Azure's samples. Each returns what it saw."""

import asyncio
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tests.integration.compat import aio_programs, threads_programs
from tests.integration.compat.sides import AioOwnStore, OwnStore, Place


async def nested_clients(place: Place) -> Any:
    """A callback opens a client of its own, receives from another partition, and closes it."""
    place.publish(["a"], "0")
    place.publish(["b", "c"], "1")
    seen: list[Any] = []

    class Inner(aio_programs.Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            seen.append((context.partition_id, event.body_as_str()))

    class Outer(aio_programs.Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            async with place.aio_client() as client:
                inner = Inner(client).begin(partition_id="1")
                await inner.until(lambda: len(seen) == 2)
                await inner.end()
            seen.append((context.partition_id, event.body_as_str()))

    outer = Outer(place.aio_client()).begin(partition_id="0")
    await outer.until(lambda: len(seen) == 3)
    return seen, (await outer.end())["0"]


def two_calls_in_two_threads(place: Place) -> Any:
    """One client receives from two partitions, each in a thread of its own."""
    place.publish(["a", "b"], "0", "1")
    client = place.threads_client()
    calls = [threads_programs.Receiving(client).begin(partition_id=p) for p in "01"]
    for partition_id, call in zip("01", calls, strict=True):
        call.until(lambda p=partition_id, call=call: len(call.numbers(p)) == 2)
    return [(call.end(), call.outcome) for call in calls]


async def slow_and_failing_initialize(place: Place) -> Any:
    """``on_partition_initialize`` takes long, stores a checkpoint before any event, and fails."""
    place.publish(["a", "b"], "0", "1")

    class Initializing(aio_programs.Receiving):
        async def on_partition_initialize(self, context: Any) -> None:
            await asyncio.sleep(0.3)
            await context.update_checkpoint()
            await super().on_partition_initialize(context)
            if context.partition_id == "1":
                raise LookupError("no state")

    receiving = Initializing(place.aio_client(checkpoint_store=place.blob_store())).begin()
    await receiving.until(lambda: all(len(receiving.numbers(p)) == 2 for p in "01"))
    return await receiving.end(), place.blobs("checkpoint")


def checkpoints_from_a_pool(place: Place) -> Any:
    """Events are handled, and checkpointed, in a thread of the program's own."""
    place.publish(list("abc"), "0", "1")
    pool = ThreadPoolExecutor(1)
    stored: list[Any] = []

    class Pooling(threads_programs.Receiving):
        def handle(self, context: Any, event: Any) -> None:
            pool.submit(self.work, context, event)

        def work(self, context: Any, event: Any) -> None:
            context.update_checkpoint(event)
            stored.append(event.sequence_number)

    receiving = Pooling(place.threads_client(checkpoint_store=place.threads_blob_store())).begin()
    receiving.until(lambda: len(stored) == 6)
    receiving.end()
    pool.shutdown()
    return sorted(stored), place.blobs("checkpoint")


async def cancelled_in_a_callback(place: Place) -> Any:
    """The task of ``receive`` is cancelled while a callback waits."""
    place.publish(["a", "b"])

    class Waiting(aio_programs.Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            seen = self.by_partition[context.partition_id]
            seen.append("begins")
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise
            seen.append("ends")

    receiving = Waiting(place.aio_client()).begin(partition_id="0")
    await receiving.until(lambda: "begins" in receiving.by_partition["0"])
    assert receiving._task is not None
    receiving._task.cancel()
    with suppress(asyncio.CancelledError):
        await receiving._task
    return receiving.by_partition["0"]


async def closed_in_a_callback_of_aio(place: Place) -> Any:
    """A callback awaits ``close`` of its own client."""
    place.publish(["a", "b"])

    class Closing(aio_programs.Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            try:
                await self.client.close()
            except asyncio.CancelledError:
                self.by_partition["0"].append("cancelled")
                raise
            self.by_partition["0"].append("returned")

    receiving = Closing(place.aio_client()).begin(partition_id="0")
    await receiving.until(lambda: str(receiving.by_partition["0"][-1:]).startswith("['close"))
    return (await receiving.end())["0"]


async def slow_batches(place: Place) -> Any:
    """Batches with a size and a time limit, and a callback that is slower than the limit."""
    place.publish(list("abcde"))

    class Slow(aio_programs.Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            await asyncio.sleep(0.8)
            await context.update_checkpoint()

    client = place.aio_client(checkpoint_store=place.blob_store())
    receiving = Slow(client).begin(batch=True, max_batch_size=2, max_wait_time=0.5)
    seen = receiving.by_partition["0"]
    await receiving.until(lambda: seen[-1:] == [[]] and any(4 in batch for batch in seen[1:]))
    batches = [seen for seen in (await receiving.end())["0"] if isinstance(seen, list)]
    sizes = [len(batch) for batch in batches]
    numbers = [number for batch in batches for number in batch]
    return numbers, max(sizes), sizes[-1], place.blobs("checkpoint")["0"]


async def positions_of_unknown_partitions(place: Place) -> Any:
    """Positions by partition that name one the hub has not, and leave out one that it has."""
    place.publish(["a", "b"], *"012")
    receiving = aio_programs.Receiving(place.aio_client()).begin(
        starting_position={"0": "@latest", "1": 0, "9": "@latest"},
        starting_position_inclusive={"1": True, "9": True},
        max_wait_time=1.0,
    )
    while not receiving.numbers("0"):  # Nothing tells when the link at the end is open.
        place.publish(["c"], "0")
        await asyncio.sleep(1)
    await receiving.until(lambda: all(len(receiving.numbers(p)) == 2 for p in "12"))
    await receiving.end()
    return receiving.numbers("0")[0] > 1, [receiving.numbers(p) for p in "123"], receiving.errors


def store_that_fails_at_first(place: Place) -> Any:
    """A store, derived from ``CheckpointStore``, does not answer when it is first asked."""
    place.publish(["a", "b"])
    base: Any = place.threads.CheckpointStore

    class Failing(OwnStore, base):  # type: ignore[misc]  # it is of either side
        asked = 0

        def list_checkpoints(self, *names: Any) -> Any:
            self.asked += 1
            if self.asked == 1:
                raise OSError("database is starting")
            return super().list_checkpoints(*names)

    class Checkpointing(threads_programs.Receiving):
        def handle(self, context: Any, event: Any) -> None:
            context.update_checkpoint(event)

    store = Failing()
    receiving = Checkpointing(place.threads_client(checkpoint_store=store)).begin()
    receiving.until(lambda: store.checkpoints.get("0", {}).get("sequence_number") == 1)
    receiving.end()
    return receiving.numbers(), receiving.errors


async def balanced_clients(place: Place) -> Any:
    """Two clients with other settings of balancing share the partitions of a store of theirs."""
    place.publish(["a"], *"0123")
    store = AioOwnStore()
    owners: dict[str, set[str]] = defaultdict(set)
    settings = {
        "checkpoint_store": store,
        "load_balancing_strategy": "balanced",
        "load_balancing_interval": 1,
        "partition_ownership_expiration_interval": None,
    }

    def are_shared() -> bool:
        owners.clear()
        for partition_id, owned in store.owned.items():
            owners[owned["owner_id"]].add(partition_id)
        return sorted(map(len, owners.values())) == [2, 2]

    both = [aio_programs.CheckpointingReceiving(place.aio_client(**settings)) for _ in "ab"]
    for each in both:
        each.begin()
    await both[0].until(lambda: are_shared() and len(store.checkpoints) == 4)
    for each in both:
        await each.end()
    return sorted(map(len, owners.values())), sorted(store.checkpoints)


def _two_runs(place: Place, store: Any) -> Any:
    """Run twice, with a checkpoint after each event."""

    class Checkpointing(threads_programs.Receiving):
        def handle(self, context: Any, event: Any) -> None:
            context.update_checkpoint(event)

    def is_at(last: int) -> bool:
        return place.blobs("checkpoint").get("0", {}).get("sequencenumber") == str(last)

    place.publish(list("abc"))
    found: list[Any] = []
    with store:
        for last in (2, 3):
            receiving = Checkpointing(place.threads_client(checkpoint_store=store)).begin()
            receiving.until(lambda last=last: is_at(last))
            found += [receiving.end(), place.blobs("ownership")]
            place.publish(["d"])
    return found, place.blobs("checkpoint")


def blob_store_in_a_thread(place: Place) -> Any:
    """Each side's store for threads; the second run begins after the last checkpoint."""
    return _two_runs(place, place.threads_blob_store())


def azures_store_in_a_thread(place: Place) -> Any:
    """Azure's store for threads, with either client."""
    return _two_runs(place, place.threads_blob_store("azure"))


PROGRAMS = [
    nested_clients,
    two_calls_in_two_threads,
    slow_and_failing_initialize,
    checkpoints_from_a_pool,
    cancelled_in_a_callback,
    closed_in_a_callback_of_aio,
    slow_batches,
    positions_of_unknown_partitions,
    store_that_fails_at_first,
    balanced_clients,
    blob_store_in_a_thread,
    azures_store_in_a_thread,
]
