"""What columns cost that are built from the bytes of frames, beside those built of events.

    python benchmarks/columns.py                     # a table
    python benchmarks/columns.py --format json       # for programs
    python benchmarks/columns.py --events 100000 --rounds 9

The bytes of a link are recorded from the emulator, and then decoded from memory: frames, events and
columns, in batches of ``--batch``. Both candidates decode the same bytes in turn, and their columns
are compared value by value. Figures are CPU time, medians over the rounds.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final

import pyarrow as pa

from benchmarks._rows import Row, options, print_progress, print_rows
from eventproc.columns import COLUMNS, to_columns
from eventproc.emulator import EventHubsEmulator
from eventproc.models import EventPosition, OutgoingEvent
from eventproc.sources.amqp.columns import EncodedMessages
from eventproc.sources.eventhubs import EventHubPublisher, EventHubSource
from eventproc.sources.eventhubs.direct_path.azure_internals import PartitionLink
from eventproc.sources.eventhubs.direct_path.column_batch import ColumnReader
from eventproc.sources.eventhubs.direct_path.column_frames import ColumnFrameParser
from eventproc.sources.eventhubs.direct_path.frames import FrameParser
from eventproc.sources.eventhubs.direct_path.lazy_event import EventReader

HUB: Final = "bench"
PIECE: Final = 256 * 1024
"""Bytes that are parsed at a time, as many as a link reads at most."""

FIVE: Final = ("body", "sequenceNumber", "offset", "enqueuedTime", "partitionKey")
READ: Final = {"five": FIVE, "nine": tuple(COLUMNS)}
PUBLISHED_AT_ONCE: Final = 1000

Candidate = Callable[[FrameParser, bytes, Sequence[str], int], list[pa.RecordBatch]]


def keyed(number: int) -> OutgoingEvent:
    return OutgoingEvent(body=b"x" * 200, partition_key=f"device-{number % 997}")


def with_properties(number: int) -> OutgoingEvent:
    return OutgoingEvent(
        body=b"x" * 100,
        properties={"kind": "reading", "unit": "C", "count": number, "id": f"s{number}"},
    )


def mixed(number: int) -> OutgoingEvent:
    return keyed(number) if number % 2 else with_properties(number)


SHAPES: Final = {
    "keyed, 200 B": keyed,
    "4 properties, 100 B": with_properties,
    "both in turn": mixed,
}


async def record(make: Callable[[int], OutgoingEvent], count: int) -> tuple[FrameParser, bytes]:
    """Return the bytes of a link with these events, and a parser of the link."""
    with EventHubsEmulator({HUB: 1}) as emulator:
        conn_str = emulator.connection_string_for(HUB)
        async with EventHubPublisher.from_connection_string(conn_str) as publisher:
            for begin in range(0, count, PUBLISHED_AT_ONCE):
                some = range(begin, min(begin + PUBLISHED_AT_ONCE, count))
                await publisher.publish(list(map(make, some)), patience=timedelta(seconds=30))
        async with EventHubSource.from_connection_string(conn_str) as source:
            pieces: list[bytes] = []
            payloads: list[bytes] = []
            link = await PartitionLink.open(
                source._client("$Default"),  # noqa: SLF001 - below the library
                "$Default",
                "0",
                EventPosition.earliest(),
                payloads.extend,
                owner_level=None,
            )
            parser = link.parser
            while len(payloads) < count:
                if link.credit < PUBLISHED_AT_ONCE:
                    await link.grant(10 * PUBLISHED_AT_ONCE)
                pieces.append(await link.listen())
                await link.take(pieces[-1])
            await link.close()
    assert isinstance(parser, FrameParser)
    return parser, b"".join(pieces)


def of_frames(
    parser: FrameParser, data: bytes, names: Sequence[str], batch: int
) -> list[pa.RecordBatch]:
    """Build the columns from the bytes."""
    frames, reader = ColumnFrameParser(parser), ColumnReader()
    waiting: list[EncodedMessages] = []
    batches = []
    for found in parsed(frames.parse, data):
        assert isinstance(found, EncodedMessages)
        waiting.append(found)
        if sum(map(len, waiting)) >= batch:
            batches.append(reader.read(waiting).columns(names, "0"))
            waiting = []
    batches.append(reader.read(waiting).columns(names, "0"))
    return batches


def of_events(
    parser: FrameParser, data: bytes, names: Sequence[str], batch: int
) -> list[pa.RecordBatch]:
    """Build the columns of an object for each event."""
    reader = EventReader()
    waiting: list[bytes] = []
    batches = []
    for found in parsed(parser.parse, data):
        waiting += found
        if len(waiting) >= batch:
            batches.append(to_columns(reader.read(waiting), names, "0"))
            waiting = []
    batches.append(to_columns(reader.read(waiting), names, "0"))
    return batches


def parsed(parse: Callable[[bytes], object], data: bytes) -> Iterator[Sequence[bytes]]:
    """Parse the bytes piece by piece; yield the messages of each."""
    left = b""
    for begin in range(0, len(data), PIECE):
        left += data[begin : begin + PIECE]
        found = parse(left)
        left = left[found.used :]  # type: ignore[attr-defined]  # both parsers return ParsedFrames
        yield found.payloads  # type: ignore[attr-defined]


CANDIDATES: Final[dict[str, Candidate]] = {
    "frames": of_frames,
    "events": of_events,
}


def measure(shape: str, count: int, batch: int, rounds: int) -> Iterator[Row]:
    """Measure both candidates, one after the other in each round."""
    parser, data = asyncio.run(record(SHAPES[shape], count))
    for wanted, names in READ.items():
        print_progress(f"{shape}, {wanted} columns")
        used: dict[str, list[float]] = {name: [] for name in CANDIDATES}
        tables = {}
        for _ in range(rounds):
            for name, decode in CANDIDATES.items():
                begun = time.process_time()
                batches = decode(parser, data, names, batch)
                used[name].append(1e6 * (time.process_time() - begun) / count)
                tables[name] = pa.Table.from_batches(batches).combine_chunks()
        first, second = tables.values()
        assert first.equals(second), "both candidates have the same values"
        assert first.num_rows == count
        medians = {name: statistics.median(spent) for name, spent in used.items()}
        for name, median in medians.items():
            yield {
                "candidate": name,
                "events_are": shape,
                "columns": wanted,
                "batch": batch,
                "cpu_us_per_event": round(median, 2),
                "times_less": round(max(medians.values()) / median, 1),
            }


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=8_000, help="least events in a batch")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.quick:
        given.events, given.rounds = 4_000, 1
    rows = [
        row for shape in SHAPES for row in measure(shape, given.events, given.batch, given.rounds)
    ]
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
