"""Readers of a backlog for the benchmarks of sources, each run in a process of its own."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from statistics import median
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

import eventproc.columns  # noqa: F401 - the time of its imports is not measured
from benchmarks._rows import Cell, Row, print_progress
from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.ports import EventSource

BATCH: Final = 1000
BARE: Final = "bare"
CPU: Final = "cpu_us_per_event"


async def read_source(source: EventSource, partitions: int, events: int) -> int:
    """Read a backlog with a receiver for each partition; return a sum of all events."""
    total = 0

    async def read(partition: int) -> None:
        nonlocal total
        receiver = await source.open_receiver("g", str(partition), EventPosition.earliest())
        left = events // partitions
        while left > 0:
            for event in await receiver.receive(events_max=BATCH, wait_max=timedelta(seconds=5)):
                total += event.sequence_number + len(event.body)
                left -= 1

    async with source:
        await asyncio.gather(*map(read, range(partitions)))
    return total


def numbers_and_sizes(events: Sequence[ReceivedEvent]) -> int:
    """Read number and body of each event, as a proof that all were read."""
    total = 0
    for event in events:
        total += event.sequence_number + len(event.body)
    return total


async def read_processor(
    source: EventSource,
    wanted: int,
    config: EventProcessorConfig,
    sum_of: Callable[[Sequence[ReceivedEvent]], int] = numbers_and_sizes,
    *,
    as_columns: bool = False,
) -> int:
    """Read a backlog with a whole processor; return the sum of all its batches.

    A handler of columns adds up what ``numbers_and_sizes`` does.
    """
    total = seen = 0
    done = asyncio.Event()

    def add(of_batch: int, count: int) -> None:
        nonlocal total, seen
        total += of_batch
        seen += count
        if seen >= wanted:
            done.set()

    class Adding(PartitionHandler):
        async def process_events(
            self, _: PartitionContext, events: Sequence[ReceivedEvent]
        ) -> None:
            add(sum_of(events), len(events))

    class AddingColumns(PartitionHandler):
        columns = ("body", "sequenceNumber")

        async def process_columns(self, _: PartitionContext, columns: pa.RecordBatch) -> None:
            numbers = pc.sum(columns.column("sequenceNumber")).as_py()
            sizes = pc.sum(pc.binary_length(columns.column("body"))).as_py()
            add(numbers + sizes, columns.num_rows)

    store, handler = MemoryCheckpointStore(), AddingColumns if as_columns else Adding
    async with EventProcessor(source=source, store=store, handler=handler, config=config):
        await done.wait()
    return total


def cost_of(read: Callable[[], int], events: int) -> dict[str, Cell]:
    """Return the cost of reading so many events, and what was read."""
    begun_s, begun_cpu_s = time.monotonic(), time.process_time()
    total = read()
    return {
        CPU: 1e6 * (time.process_time() - begun_cpu_s) / events,
        "events_per_s": events / (time.monotonic() - begun_s),
        "sum": total,
    }


def compared(
    candidates: Sequence[str], rounds: int, run: Callable[[str], Mapping[str, Cell]], size: Row
) -> list[Row]:
    """Let each candidate read in turn, round after round; return the medians of its figures.

    *Times bare* are the medians of its CPU time in relation to that of ``bare`` in the same round,
    with the least and the most if there are several rounds.
    """
    runs: dict[str, list[dict[str, float]]] = {candidate: [] for candidate in candidates}
    for _ in range(rounds):
        for candidate, of_candidate in runs.items():
            print_progress(", ".join([candidate, *(f"{n} {value}" for n, value in size.items())]))
            of_candidate.append({n: float(value or 0) for n, value in run(candidate).items()})
    sums = {found.pop("sum") for some in runs.values() for found in some}
    assert len(sums) == 1, "not all read the same"
    rows: list[Row] = []
    for candidate, some in runs.items():
        medians = {name: median(found[name] for found in some) for name in some[0]}
        pairs = zip(some, runs.get(BARE, ()), strict=False)
        times = [ours[CPU] / bare[CPU] for ours, bare in pairs]
        row: dict[str, Cell] = {"candidate": candidate, **size, **medians}
        if times:
            row["times_bare"] = median(times)
        if len(times) > 1:
            row |= {"least": min(times), "most": max(times)}
        rows.append(row)
    return rows


def child(program: str, *what: object) -> dict[str, Cell]:
    """Run a reader of *program* in a new process: its option ``--reader`` gets *what*, as JSON."""
    found: dict[str, Cell] = json.loads(
        subprocess.run(
            [sys.executable, program, "--reader", json.dumps(what)],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )
    return found
