"""How fast Capture files are read: events, and columns of them, for one core.

    python benchmarks/capture.py
    python benchmarks/capture.py --quick

Bodies have 100 bytes, blocks 64 KB; each event has its enqueued time as its only annotation. Files
are in a folder, so no download is measured. Figures are events for a second of CPU time, the
best of the rounds.
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import fastavro

from benchmarks._rows import Row, options, print_rows
from eventproc.columns import COLUMNS, to_columns
from eventproc.emulator._capture import SCHEMA
from eventproc.models import EventPosition
from eventproc.sources.capture import CapturedHub, FolderCaptureFiles
from eventproc.sources.memory import MemoryEventSource, MemoryHub

NAME: Final = "memory/hub/0/2025/01/02/03/04/05.avro"
AT_MS: Final = 1_735_787_045_000
FEW: Final = ("body", "sequenceNumber", "enqueuedTime")


def write(folder: Path, count: int, codec: str) -> None:
    """Write a file with so many events."""
    path = folder / NAME
    path.parent.mkdir(parents=True)
    records = (
        {
            "SequenceNumber": number,
            "Offset": str(number * 200),
            "EnqueuedTimeUtc": "1/2/2025 3:04:05 AM",
            "SystemProperties": {"x-opt-enqueued-time": AT_MS + number},
            "Properties": {},
            "Body": b"%0100d" % number,
        }
        for number in range(count)
    )
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, records, codec=codec, sync_interval=64_000)


async def rate(folder: Path, count: int, columns: Sequence[str] | None) -> int:
    """Read all events; return how many for a second of CPU time."""
    hub = MemoryHub(1, clock=lambda: datetime.now(UTC))
    began_s, got = 0.0, 0
    async with CapturedHub(MemoryEventSource(hub), FolderCaptureFiles(folder)) as source:
        hub.publish(b"", partition_id="0")
        hub._logs["0"].first = count - 1  # noqa: SLF001 - its only event is the last one captured
        receiver = await source.open_receiver("any", "0", EventPosition.earliest())
        if columns is not None:
            receiver.read_columns()
        began_s = time.process_time()
        while got < count - 1:
            events = await receiver.receive(events_max=10_000, wait_max=timedelta(seconds=60))
            got += len(events)
            if columns is not None:
                to_columns(events, columns, "0")
    return round(got / (time.process_time() - began_s))


def main() -> None:
    parser = options(__doc__)
    given = parser.parse_args()
    count, rounds = (5_000, 1) if given.quick else (200_000, 5)
    rows: list[Row] = []
    for codec in ("null", "deflate"):
        with TemporaryDirectory() as place:
            folder = Path(place)
            write(folder, count, codec)
            for what, columns in (("events", None), ("three columns", FEW), ("all", COLUMNS)):
                wanted = None if columns is None else tuple(columns)
                rates = [asyncio.run(rate(folder, count, wanted)) for _ in range(rounds)]
                rows.append({"codec": codec, "what": what, "events_per_cpu_second": max(rates)})
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
