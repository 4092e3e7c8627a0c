"""The cost of the load-balancing cycle: listings, renewals, cycles.

    python benchmarks/loop.py                    # a table for each question; three minutes
    python benchmarks/loop.py --format json      # for programs
    python benchmarks/loop.py --quick

The store is compared with Azure's own for aio, both on one Azurite in a process of its own, so CPU
time is the client's alone:

- *list*: all ownership records;
- *renew*: conditional writes of ownership, many at once (each store limits them in its own way);
- *cycle*: one poll by a balanced processor of a group of so many partitions, of which it owns a
  hundredth (32 at most), and the requests that it sends.
"""

import asyncio
import gc
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzureStore

from benchmarks._rows import Row, options, print_progress, print_rows
from benchmarks._storage_calls import counted
from checkpointstores.blob import BlobCheckpointStore
from eventproc import (
    ConsumerGroup,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.models import OwnershipClaim
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing._azurite import Azurite

SIZES: Final = (32, 1_000, 10_000)
ROUNDS: Final = 5
ROUNDS_OF_LARGE: Final = 2
CYCLES: Final = 4
OWNED_MAX: Final = 32
AT_ONCE: Final = 256
LONG: Final = timedelta(hours=1)


class Idle(PartitionHandler):
    """Does nothing."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Return."""


def group_of(size: int) -> ConsumerGroup:
    return ConsumerGroup(fully_qualified_namespace="memory", eventhub_name=f"hub{size}")


def owner_of(number: int, size: int) -> str:
    """Return the owner of a partition: the first ones are ours, other owners have as many each."""
    return f"owner-{number // owned_count(size)}"


def owned_count(size: int) -> int:
    return max(min(size // 100, OWNED_MAX), 1)


class Timings:
    """Wall-clock and CPU time of some calls."""

    def __init__(self) -> None:
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []

    @contextmanager
    def one(self) -> Iterator[None]:
        """Measure the block."""
        gc.collect()
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        yield
        self.wall_s.append(time.perf_counter() - wall_s)
        self.cpu_s.append(time.process_time() - cpu_s)

    def row(self, question: str, candidate: str, size: int, calls: int = 1) -> dict[str, Any]:
        """Return the medians, divided by the number of calls."""
        return {
            "question": question,
            "candidate": candidate,
            "partitions": size,
            "wall_ms": round(1e3 * statistics.median(self.wall_s) / calls, 3),
            "cpu_ms": round(1e3 * statistics.median(self.cpu_s) / calls, 3),
        }


# --- the store -----------------------------------------------------------------------------------


async def interleaved(
    question: str,
    size: int,
    candidates: Mapping[str, Callable[[], Awaitable[object]]],
    rounds: int,
    calls: int = 1,
) -> list[Row]:
    """Call each candidate in turn, round after round, so that all run under the same conditions."""
    timings = {name: Timings() for name in candidates}
    for _ in range(rounds):
        for name, call in candidates.items():
            with timings[name].one():
                await call()
    return [timings[name].row(question, name, size, calls) for name in candidates]


async def fill(store: BlobCheckpointStore, size: int) -> Mapping[str, str]:
    """Write the records of a whole group; return their ETags by partition."""
    claims = [
        OwnershipClaim(partition_id=str(n), owner_id=owner_of(n, size), expected_etag=None)
        for n in range(size)
    ]
    written = await store.claim_ownership(group_of(size), claims)
    return {r.claim.partition_id: r.ownership.etag for r in written if r.ownership}


async def lists(ours: BlobCheckpointStore, azures: AzureStore, size: int, rounds: int) -> list[Row]:
    """List all records of a group."""
    group = group_of(size)
    candidates = {
        "eventproc": lambda: ours.list_ownership(group),
        "azure": lambda: azures.list_ownership(*group.key),
    }
    return await interleaved("list", size, candidates, rounds)


async def renewals(
    ours: BlobCheckpointStore, azures: AzureStore, etags: Mapping[str, str], size: int, rounds: int
) -> list[Row]:
    """Renew some records at once, with both stores in turn on records of their own."""
    group, count = group_of(size), min(size // 2, AT_ONCE)
    etag_by_partition = dict(etags)
    records = [
        {
            "fully_qualified_namespace": group.fully_qualified_namespace,
            "eventhub_name": group.eventhub_name,
            "consumer_group": group.name,
            "partition_id": str(number),
            "owner_id": owner_of(number, size),
            "etag": etag_by_partition[str(number)],
        }
        for number in range(count, 2 * count)
    ]

    async def renew_ours() -> None:
        claims = [
            OwnershipClaim(
                partition_id=str(n),
                owner_id=owner_of(n, size),
                expected_etag=etag_by_partition[str(n)],
            )
            for n in range(count)
        ]
        for result in await ours.claim_ownership(group, claims):
            assert result.ownership is not None, "no other process writes"
            etag_by_partition[result.claim.partition_id] = result.ownership.etag

    async def renew_azures() -> None:
        renewed = list(await azures.claim_ownership(records))
        assert len(renewed) == count, "no other process writes"
        records[:] = renewed

    candidates = {"eventproc": renew_ours, "azure": renew_azures}
    return await interleaved("renew", size, candidates, rounds, calls=count)


# --- the loop ------------------------------------------------------------------------------------


async def cycles(storage: str, size: int, cycle_count: int) -> Row:
    """Measure some cycles of one processor of a balanced group."""
    # Objects of the other questions must not slow down garbage collections of this processor.
    gc.collect()
    gc.freeze()
    store = BlobCheckpointStore.from_connection_string(storage, "loop")
    processor = EventProcessor(
        source=MemoryEventSource(MemoryHub(size, name=f"hub{size}")),
        store=store,
        handler=Idle,
        owner_id="owner-0",
        config=EventProcessorConfig(
            load_balancing_interval=timedelta(seconds=0.5), ownership_expiration=LONG
        ),
    )
    cycle_s = []
    with counted() as sent:
        async with processor:
            while not (now := processor.statistics()).is_balanced or not now.owned:  # noqa: ASYNC110 - a count
                await asyncio.sleep(0.05)
            before, sent_before = now.cycle_count, Counter(sent)
            cpu_s, seen = time.process_time(), before
            while seen < before + cycle_count:
                await asyncio.sleep(0.1)
                now = processor.statistics()
                if now.cycle_count > seen:
                    seen = now.cycle_count
                    cycle_s.append(now.cycle_seconds or 0.0)
            cpu_s = time.process_time() - cpu_s
            made = sent - sent_before
            owned = len(now.owned)
    return {
        "question": "cycle",
        "candidate": "eventproc",
        "partitions": size,
        "owned": owned,
        "wall_ms": round(1e3 * statistics.median(cycle_s), 2),
        "cpu_ms": round(1e3 * cpu_s / cycle_count, 2),
        "lists_per_cycle": round(made["lists"] / cycle_count, 2),
        "writes_per_cycle": round(made["put"] / cycle_count, 2),
    }


async def measure(storage: str, *, is_quick: bool) -> list[Row]:
    rows: list[Row] = []
    async with (
        BlobCheckpointStore.from_connection_string(storage, "loop", create_container=True) as ours,
        AzureStore.from_connection_string(storage, "loop") as azures,
    ):
        for size in SIZES[:1] if is_quick else SIZES:
            print_progress(f"a group of {size:,} partitions")
            etags = await fill(ours, size)
            rounds = ROUNDS if size <= SIZES[1] and not is_quick else ROUNDS_OF_LARGE
            rows += await lists(ours, azures, size, rounds)
            rows += await renewals(ours, azures, etags, size, rounds)
            rows.append(await cycles(storage, size, 2 if is_quick else CYCLES))
    return sorted(rows, key=lambda row: str(row["question"]))


def main() -> None:
    given = options(__doc__).parse_args()
    with Azurite() as azurite:
        rows = asyncio.run(measure(azurite.connection_string, is_quick=given.quick))
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
