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
) -> int:
    """Read a backlog with a whole processor; return the sum of all its batches."""
    total = seen = 0
    done = asyncio.Event()

    class Adding(PartitionHandler):
        async def process_events(
            self,
            context: PartitionContext,  # noqa: ARG002 - the name is the handler's
            events: Sequence[ReceivedEvent],
        ) -> None:
            nonlocal total, seen
            total += sum_of(events)
            seen += len(events)
            if seen >= wanted:
                done.set()

    store = MemoryCheckpointStore()
    async with EventProcessor(source=source, store=store, handler=Adding, config=config):
        await done.wait()
    return total


async def read_columns(source: EventSource, wanted: int, config: EventProcessorConfig) -> int:
    """Read a backlog with a whole processor and a handler of columns; return the same sum."""
    total = seen = 0
    done = asyncio.Event()

    class Adding(PartitionHandler):
        columns = ("body", "sequenceNumber")

        async def process_columns(
            self,
            context: PartitionContext,  # noqa: ARG002 - the name is the handler's
            columns: pa.RecordBatch,
        ) -> None:
            nonlocal total, seen
            total += pc.sum(columns.column("sequenceNumber")).as_py()
            total += pc.sum(pc.binary_length(columns.column("body"))).as_py()
            seen += columns.num_rows
            if seen >= wanted:
                done.set()

    store = MemoryCheckpointStore()
    async with EventProcessor(source=source, store=store, handler=Adding, config=config):
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
