"""Finds files of one partition: the first one, the one to begin with, and those that follow.

Days are looked at one by one, each by its own listing. The file that has a position is found by
bisection, first of days and then of the files of a day, with the first event of each: names say
nothing about numbers, and only the order of files is relied on.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias, TypeVar

from eventproc._base.capture_names import CapturedFile, FileNames
from eventproc.errors import SourceUnavailableError
from eventproc.models import ReceivedEvent
from eventproc.sources.capture._avro import AvroFile, DamagedFileError
from eventproc.sources.capture._events import CapturedEvents
from eventproc.sources.capture._files import CaptureFiles

_HEAD_BYTES: Final = 64 * 1024
"""How much of a file is read to see its first event; more only if its first block is larger."""

_REMEMBERED_MAX: Final = 1000
"""First events to remember, so that no file is read for the next search again."""

_DAY: Final = timedelta(days=1)

FirstEvent: TypeAlias = tuple[CapturedFile, ReceivedEvent]
"""A file and its first event."""

IsBefore: TypeAlias = Callable[[ReceivedEvent], bool]
"""Whether an event comes before the position that is looked for."""

T = TypeVar("T")


class PartitionFiles:
    """The files of one partition."""

    def __init__(self, capture: CaptureFiles, names: FileNames, partition_id: str) -> None:
        self._capture = capture
        self._names = names
        self._partition_id = partition_id
        self._first_events: dict[CapturedFile, ReceivedEvent | None] = {}
        self._empty_sizes: set[int] = set()

    @property
    def place(self) -> str:
        """What the names of the files begin with, for messages."""
        return self._names.prefix(self._partition_id)

    async def first(self, *, skips_damaged: bool = False) -> FirstEvent | None:
        """Return the first file that has an event; ``None`` if there is none.

        Raises:
            SourceError: it cannot be read.
        """
        day = await self._first_day()
        if day is None:
            return None
        return await self._first_from(day, _tomorrow(), skips_damaged=skips_damaged)

    async def find(self, is_before: IsBefore) -> CapturedFile | None:
        """Return the last file whose first event is before a position, or else the first file.

        ``None`` if no file has an event.

        Raises:
            SourceError: a file cannot be read.
        """
        first = await self.first(skips_damaged=True)
        if first is None or not is_before(first[1]):
            first = await self.first()  # A damaged one before it may have what is wanted.
            return first and first[0]

        async def day_at(place: int, end: int) -> tuple[int, ReceivedEvent] | None:
            found = await self._first_from(
                date.fromordinal(place), date.fromordinal(end - 1), skips_damaged=True
            )
            return found and (found[0].at.date().toordinal(), found[1])

        begin, end = first[0].at.date().toordinal(), _tomorrow().toordinal() + 1
        day = await _last_before(begin, end, day_at, is_before)
        files = await self._day(date.fromordinal(day))

        async def file_at(place: int, end: int) -> tuple[int, ReceivedEvent] | None:
            for index in range(place, end):
                event = await self._first_whole(files[index])
                if event is not None:
                    return index, event
            return None

        return files[await _last_before(0, len(files), file_at, is_before)]

    async def following(self, last: CapturedFile) -> AsyncIterator[CapturedFile]:
        """Return the files after one, in order, until there are no more for now.

        Raises:
            SourceError: they cannot be listed.
        """
        day = last.at.date()
        while day <= _tomorrow():
            new = [file for file in await self._day(day) if file > last]
            for file in new:
                yield file
                last = file
            if not new:  # Until then others may have arrived.
                day = await self._day_after(day)

    async def content(
        self, file: CapturedFile, bytes_at_once: int
    ) -> AsyncIterator[Iterator[CapturedEvents]]:
        """Return the events of a file, some with each download; they are decoded when read.

        A file without events is a head, which is the same in all files of a writer. So a file of
        the same size has none either, and is not read: with an event it would be longer by more
        than heads differ.

        Raises:
            SourceError: it cannot be read, or is damaged; also while events are decoded.
        """
        if file.byte_count in self._empty_sizes:
            return
        content, at = AvroFile(file.name, file.byte_count), 0
        while at < file.byte_count or not at:
            data = await self._capture.read(file.name, at, bytes_at_once)
            if not data and file.byte_count:
                raise SourceUnavailableError(f"Capture file {file.name} is shorter than before")
            at += len(data)
            yield content.feed(data)
            if not file.byte_count:
                return
        if content.is_empty:
            self._empty_sizes.add(file.byte_count)

    async def _first_day(self) -> date | None:
        """Return the day of the first file; one before it if files of others come first."""
        days = set()
        prefix = self._names.prefix(self._partition_id)
        is_in_order = self._names.is_in_order
        async for name, byte_count in self._capture.names(prefix, is_first_enough=is_in_order):
            if found := self._names.file(name, byte_count):
                days.add(found[1].at.date())
                if is_in_order:
                    break
        since = self._capture.since
        if not days or since is None:
            return min(days, default=None)
        return max(min(days), since.astimezone(UTC).date())

    async def _day(self, day: date) -> Sequence[CapturedFile]:
        """Return the files of a day, in order."""
        since = self._capture.since
        files = []
        for prefix in self._names.prefixes(self._partition_id, day):
            async for name, byte_count in self._capture.names(prefix):
                found = self._names.file(name, byte_count)
                if found and found[0] == self._partition_id and found[1].at.date() == day:
                    files.append(found[1])
        return sorted(file for file in files if since is None or file.at >= since)

    async def _first_from(
        self, day: date, last: date, *, skips_damaged: bool = False
    ) -> FirstEvent | None:
        """Return the first file from a day to another that has an event, and that event."""
        first_event = self._first_whole if skips_damaged else self.first_event
        while day <= last:
            for file in await self._day(day):
                event = await first_event(file)
                if event is not None:
                    return file, event
            day = await self._day_after(day)
        return None

    async def _day_after(self, day: date) -> date:
        """Return the next day that may have files; a month without any is passed over at once."""
        day += _DAY
        while self._names.is_in_order and day.day == 1 and day <= _tomorrow():
            prefix = self._names.month_prefix(self._partition_id, day)
            async for name, byte_count in self._capture.names(prefix, is_first_enough=True):
                if found := self._names.file(name, byte_count):
                    return max(day, found[1].at.date())
            day = (day + 31 * _DAY).replace(day=1)
        return day

    async def first_event(self, file: CapturedFile) -> ReceivedEvent | None:
        """Return the first event of a file; ``None`` if it has none.

        Raises:
            SourceError: it cannot be read.
        """
        if file not in self._first_events:
            if len(self._first_events) >= _REMEMBERED_MAX:
                self._first_events.clear()
            self._first_events[file] = await self._read_first_event(file)
        return self._first_events[file]

    async def _first_whole(self, file: CapturedFile) -> ReceivedEvent | None:
        """Return the first event; ``None`` if the file has none, or is damaged.

        A search goes on without a damaged file. If its events are wanted, the reader comes to it.
        """
        try:
            return await self.first_event(file)
        except DamagedFileError:
            return None

    async def _read_first_event(self, file: CapturedFile) -> ReceivedEvent | None:
        async for batches in self.content(file, _HEAD_BYTES):
            for batch in batches:
                return batch[0]
        return None


async def _last_before(
    begin: int,
    end: int,
    event_at: Callable[[int, int], Awaitable[tuple[int, ReceivedEvent] | None]],
    is_before: IsBefore,
) -> int:
    """Return the last place whose first event is before a position; *begin* if none is.

    ``event_at(place, end)`` returns the first place that has an event, from *place* to before
    *end*, and that event.
    """
    while end - begin > 1:
        middle = (begin + end) // 2
        found = await event_at(middle, end)
        if found is not None and is_before(found[1]):
            begin = found[0]
        else:
            end = middle
    return begin


def _tomorrow() -> date:
    """Return the last day that may have files: clocks differ."""
    return datetime.now(UTC).date() + _DAY
