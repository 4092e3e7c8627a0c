"""Capture files in memory, as Event Hubs writes them, with counts of what is asked of them."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count

import fastavro

from eventproc._base.capture_names import DEFAULT_FORMAT, FileNames
from eventproc.models import ReceivedEvent
from eventproc.sources.capture import CaptureFiles

_VALUES = ["long", "double", "string", "bytes"]
SCHEMA = {
    "type": "record",
    "name": "EventData",
    "namespace": "Microsoft.ServiceBus.Messaging",
    "fields": [
        {"name": "SequenceNumber", "type": "long"},
        {"name": "Offset", "type": "string"},
        {"name": "EnqueuedTimeUtc", "type": "string"},
        {"name": "SystemProperties", "type": {"type": "map", "values": _VALUES}},
        {"name": "Properties", "type": {"type": "map", "values": _VALUES}},
        {"name": "Body", "type": ["null", "bytes"]},
    ],
}
"""As the documentation of Event Hubs has it."""

NOON = datetime(2024, 5, 10, 12, tzinfo=UTC)


def record_of(event: ReceivedEvent) -> dict[str, object]:
    """Return an event as a file has it."""
    at = event.enqueued_time
    system: dict[str, object] = {
        "x-opt-sequence-number": event.sequence_number,
        "x-opt-offset": event.offset,
        "x-opt-enqueued-time": round(at.timestamp() * 1000),
    }
    if event.partition_key is not None:
        system["x-opt-partition-key"] = event.partition_key
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": event.offset,
        "EnqueuedTimeUtc": f"{at.month}/{at.day}/{at.year} {at:%I:%M:%S %p}",
        "SystemProperties": system,
        "Properties": dict(event.properties),
        "Body": event.body,
    }


def bare_record_of(event: ReceivedEvent) -> dict[str, object]:
    """Return an event with nothing that the hub adds: in memory it adds nothing."""
    time = event.enqueued_time.isoformat()
    return {**record_of(event), "EnqueuedTimeUtc": time, "SystemProperties": {}}


def file_of(
    records: Sequence[dict[str, object]], *, codec: str = "null", block_bytes: int = 16_000
) -> bytes:
    """Return the content of a file with these records."""
    out = BytesIO()
    fastavro.writer(out, SCHEMA, records, codec=codec, sync_interval=block_bytes)
    return out.getvalue()


class MemoryCaptureFiles(CaptureFiles):
    """Files in a dictionary, by name."""

    def __init__(
        self,
        *,
        name_format: str = DEFAULT_FORMAT,
        since: datetime | None = None,
        namespace: str = "memory",
        eventhub: str = "hub",
        record_of: Callable[[ReceivedEvent], dict[str, object]] = record_of,
    ) -> None:
        super().__init__(name_format=name_format, since=since)
        self.content: dict[str, bytes] = {}
        self.listed: list[str] = []
        self.read_names: list[str] = []
        self._names = FileNames(self.name_format, namespace, eventhub)
        self._seconds = count()
        self._record_of = record_of

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def names(
        self, prefix: str, *, is_first_enough: bool = False
    ) -> AsyncIterator[tuple[str, int]]:
        self.listed.append(prefix)
        for name, data in sorted(self.content.items()):
            if name.startswith(prefix):
                yield name, len(data)

    async def read(self, name: str, start: int, byte_count: int) -> bytes:
        self.read_names.append(name)
        return self.content[name][start : start + byte_count]

    def add(
        self,
        partition_id: str,
        events: Sequence[ReceivedEvent],
        *,
        at: datetime | None = None,
        codec: str = "null",
        block_bytes: int = 16_000,
    ) -> str:
        """Add a file, by default a second after the one before; return its name."""
        at = at or NOON + timedelta(seconds=next(self._seconds))
        name = self._names.name(partition_id, at)
        self.content[name] = file_of(
            list(map(self._record_of, events)), codec=codec, block_bytes=block_bytes
        )
        return name
