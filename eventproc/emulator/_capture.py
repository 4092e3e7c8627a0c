"""Writes the events of all partitions to Avro files, in the windows of Event Hubs' Capture.

Rule 1: each partition has windows of its own. One ends after the interval or when it has enough
bytes, and then becomes a file, also an empty one.
Rule 2: events wait here until they are in a file, so retention cannot delete them before. A file
has its name only when it is complete.
Rule 3: what waits when the emulator stops is written then. After a kill, events that a directory
kept are captured again: readers drop what they have.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from eventproc._base.capture_names import SUFFIX, FileNames, check_format, namespace_in_names
from eventproc._base.extras import needing
from eventproc._base.logs import get_logger
from eventproc._base.tasks import to_the_end
from eventproc.emulator._amqp.message import Message, StoredEvent, read_message
from eventproc.emulator._hub.configuration import CaptureConfiguration
from eventproc.emulator._hub.hub import Clock, Hub, Namespace, Partition

with needing("capture"):
    import fastavro

_VALUES: Final = ["long", "double", "string", "bytes"]
SCHEMA: Final = fastavro.parse_schema(
    {
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
)
_PROPERTIES: Final = {0: "message-id", 5: "correlation-id", 6: "content-type"}
"""Fields of AMQP that a reader has a field for, by their place."""

_SECOND: Final = timedelta(seconds=1)
_SHORTEST_PAUSE: Final = timedelta(milliseconds=20)


class CaptureWriter:
    """Captures every hub of a namespace."""

    def __init__(
        self, configuration: CaptureConfiguration, namespace: Namespace, host: str, clock: Clock
    ) -> None:
        self._configuration = configuration
        self._namespace = namespace
        self._names: dict[str, FileNames] = {}
        self._host = namespace_in_names(host)
        self._clock = clock
        self._window_ends: dict[Partition, datetime] = {}
        self._last_names: dict[Partition, datetime] = {}
        self._log = get_logger("eventproc.emulator")

    async def run(self) -> None:
        """Write a file whenever a window ends, for ever."""
        pause = max(min(self._configuration.interval / 10, _SECOND), _SHORTEST_PAUSE)
        while True:
            await self.write(only_due=True)
            await asyncio.sleep(pause.total_seconds())

    async def write(self, *, only_due: bool) -> None:
        """Write the windows that have ended, or all that have events."""
        for hub in self._namespace.hubs.values():
            for partition in hub.partitions:
                waiting = partition.uncaptured
                assert waiting is not None, "it is captured"
                now = datetime.fromtimestamp(self._clock() / 1000, UTC)
                end = self._window_ends.setdefault(partition, now + self._configuration.interval)
                is_full = waiting.byte_count >= self._configuration.bytes_max
                if only_due and not is_full and now < end:
                    continue
                self._window_ends[partition] = now + self._configuration.interval
                if waiting.events or (only_due and self._configuration.writes_empty):
                    # What was taken for a file must get into it, even if the emulator stops.
                    writing = self._write_file(hub, partition, now)
                    await to_the_end(asyncio.ensure_future(writing))

    async def _write_file(self, hub: Hub, partition: Partition, now: datetime) -> None:
        waiting = partition.uncaptured
        assert waiting is not None, "it is captured"
        # Names have seconds: two files of a second would have the same.
        last = self._last_names.get(partition)
        at = now if last is None else max(now, last + _SECOND)
        if hub.name not in self._names:
            text = check_format(self._configuration.name_format)
            self._names[hub.name] = FileNames(text, self._host, hub.name)
        names, folder = self._names[hub.name], self._configuration.folder
        events = waiting.take()

        def write() -> datetime:
            """Write a file with the first name that no other has; return the time in it."""
            free = at
            while (path := folder / names.name(partition.partition_id, free)).exists():
                free += _SECOND  # An emulator that ended just now has this one.
            _write(path, events, self._configuration.is_deflated)
            return free

        try:
            self._last_names[partition] = await asyncio.to_thread(write)
        except OSError as error:
            waiting.put_back(events)
            path = folder / names.name(partition.partition_id, at)
            self._log.warning("capture_failed", file=str(path), error=str(error))


def _write(path: Path, events: Sequence[StoredEvent], is_deflated: bool) -> None:  # noqa: FBT001
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f"{SUFFIX}.part")
    codec = "deflate" if is_deflated else "null"
    with beside.open("wb") as file:
        fastavro.writer(file, SCHEMA, map(_record, events), codec=codec)
    beside.replace(path)


def _record(event: StoredEvent) -> Mapping[str, Any]:
    message = read_message(event.payload)
    at = datetime.fromtimestamp(event.enqueued_ms / 1000, UTC)
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": str(event.offset),
        "EnqueuedTimeUtc": f"{at.month}/{at.day}/{at.year} {at:%I:%M:%S %p}",
        "SystemProperties": _system_properties(message),
        "Properties": {str(n): _value(v) for n, v in message.application_properties.items()},
        "Body": b"".join(message.data),
    }


def _system_properties(message: Message) -> dict[str, object]:
    found = {str(name): _value(value) for name, value in message.annotations.items()}
    for place, name in _PROPERTIES.items():
        value = message.property_at(place)
        if value is not None:
            found[name] = _value(value)
    return found


def _value(value: object) -> object:
    """Return a value as a file can have it: a number, text or bytes."""
    if isinstance(value, bool | int):
        return int(value)
    return value if isinstance(value, float | bytes) else str(value)
