"""A source of your own: a folder with one text file for each partition, each line of it an event.

It passes the contract that the library's own sources pass. The port says what is asked of it:
``eventproc.ports``.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from eventproc.errors import ConfigurationError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition, LastEnqueued, PartitionProperties, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.testing import SourceBench, check_event_source

POLL_S = 0.02


def events_in(file: Path) -> list[ReceivedEvent]:
    """Read a partition: a line has the time and the body. The number of an event is its line's."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return [
        ReceivedEvent(
            body=bytes.fromhex(body[0] if body else ""),
            sequence_number=number,
            offset=str(number),
            enqueued_time=datetime.fromisoformat(time),
        )
        for number, (time, *body) in enumerate(lines)
    ]


class FileReceiver(PartitionReceiver):
    """Reads one file from a line on."""

    def __init__(self, file: Path, following: int) -> None:
        self.file, self.following, self.is_closed = file, following, False

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_max.total_seconds()
        await asyncio.sleep(0)  # Other tasks run, even if there are always events.
        while True:
            if self.is_closed:
                raise SourceUnavailableError("the receiver is closed")
            events = events_in(self.file)[self.following :][:events_max]
            if events or loop.time() >= until_s:
                self.following += len(events)  # No await follows: a cancelled call took none.
                return events
            await asyncio.sleep(min(POLL_S, max(0.0, until_s - loop.time())))

    async def close(self) -> None:
        self.is_closed = True

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        for newest in events_in(self.file)[-1:]:
            return LastEnqueued(
                sequence_number=newest.sequence_number,
                offset=newest.offset,
                enqueued_time=newest.enqueued_time,
            )
        return None


class FileSource(EventSource):
    """Reads the files `0`, `1` ... of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.receivers = folder, list[FileReceiver]()

    @property
    def fully_qualified_namespace(self) -> str:
        return "files"

    @property
    def eventhub_name(self) -> str:
        return self.folder.name

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        for receiver in self.receivers:
            await receiver.close()

    async def check_consumer_group(self, name: str) -> None:
        if not self.folder.is_dir():
            raise ConfigurationError(f"{self.folder} is no folder, so group {name!r} has no events")

    async def partition_ids(self) -> Sequence[str]:
        return sorted((file.name for file in self.folder.iterdir()), key=int)

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        newest = events_in(self.file(partition_id))[-1:]
        return PartitionProperties(
            partition_id=partition_id,
            beginning_sequence_number=0,
            last_enqueued_sequence_number=newest[0].sequence_number if newest else -1,
            last_enqueued_offset=newest[0].offset if newest else "-1",
            last_enqueued_time=newest[0].enqueued_time if newest else None,
            is_empty=not newest,
        )

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        file = self.file(partition_id)
        receiver = FileReceiver(file, following(events_in(file), position))
        self.receivers.append(receiver)
        return receiver

    def file(self, partition_id: str) -> Path:
        """The file of a partition."""
        if not (self.folder / partition_id).is_file():
            raise SourceRejectedError(f"{self.folder} has no partition {partition_id!r}")
        return self.folder / partition_id


def following(events: Sequence[ReceivedEvent], position: EventPosition) -> int:
    """The number of the first event to deliver."""
    if position.is_latest:
        return len(events)
    if (time := position.enqueued_time) is not None:
        return sum(event.enqueued_time < time for event in events)
    number = position.sequence_number
    if position.offset is not None:
        if position.offset not in {"-1", *(event.offset for event in events)}:
            raise SourceRejectedError(f"there is no event with offset {position.offset!r}")
        number = int(position.offset)
    return 0 if number is None else number + (not position.is_inclusive)


class Folder(SourceBench):
    """A folder for the contract, with three partitions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number in range(3):
            (folder / str(number)).touch()

    def source(self) -> EventSource:
        return FileSource(self.folder)

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        with (self.folder / partition_id).open("a") as file:
            for body in bodies:
                file.write(f"{datetime.now(UTC).isoformat()} {body.hex()}\n")


with tempfile.TemporaryDirectory() as name:
    bench = Folder(Path(name))
    reports = asyncio.run(check_event_source(lambda: bench))
    print(sum(report.took is not None for report in reports), "clauses of the contract are kept")
