"""Reads a partition from its Capture files, and goes on in the hub at the next number.

Rule 1: events are returned in the order of their numbers, each once. An event of a lower number
than the next is an overlap of files, and is dropped.
Rule 2: a number is left out only if neither a file nor the hub has it, and only with
``skips_lost``; otherwise it is an error. In a compacted hub it is left out if the hub begins before
it.
Rule 3: the files are read until there are no more. Once the hub is read, they are not looked at
until another receiver is opened.
Rule 4: a task reads ahead into a bounded buffer, so a cancelled call loses no event.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc._base.capture_names import CapturedFile
from eventproc._base.extras import needing
from eventproc._base.logs import Logger, error_text
from eventproc.errors import SourceError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition, LastEnqueued, PartitionProperties, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.capture._avro import DamagedFileError
from eventproc.sources.capture._events import CapturedEvents
from eventproc.sources.capture._search import IsBefore, PartitionFiles

_DOWNLOAD_BYTES: Final = 4 * 1024 * 1024
_ROOM: Final = 16 * 1024
_ROOM_BYTES: Final = 32 * 1024 * 1024
"""Most events and bytes of bodies that are read ahead, except for a batch of ``AvroFile``."""

SAME_TIME: Final = timedelta(seconds=1)
"""Some files have times in seconds only."""

_FIRST_WITHIN: Final = timedelta(seconds=10)
"""How long to wait for the first event that the hub has."""

_ASK_EVERY_S: Final = 60.0
"""How often the hub is asked for its newest event while files are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to begin in the files."""

    file: CapturedFile
    first: int
    """The number of the first event in all files."""

    is_before: IsBefore
    """Whether an event comes before the position."""


class CapturedReceiver(PartitionReceiver):
    """An open link to one partition: first to its files, then to the hub."""

    def __init__(
        self,
        live: EventSource,
        group: str,
        files: PartitionFiles,
        position: EventPosition,
        *,
        properties: PartitionProperties,
        number: int | None,
        skips_lost: bool,
        log: Logger,
    ) -> None:
        """Read nothing before ``begin``.

        Args:
            live: The hub, open.
            group: The consumer group to read the hub through.
            files: The partition's files.
            position: Where to begin.
            properties: What the hub said of the partition just now.
            number: The first number wanted, if it is known.
            skips_lost: Whether to go on where events are lost.
            log: A log with the partition's id.
        """
        self._live = live
        self._partition_id = properties.partition_id
        self._group = group
        self._files = files
        self._position = position
        self._skips_lost = skips_lost
        self._log = log
        self._clock = asyncio.get_running_loop().time
        self._note_properties(properties)
        self._buffer: deque[tuple[CapturedFile, CapturedEvents]] = deque()
        """Files, each with the next of its events."""

        self._held: Sequence[ReceivedEvent] = ()
        """Events of the hub that were received in a call that was cancelled."""

        self._count = self._byte_count = 0
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._kind: type[CapturedEvents] = CapturedEvents
        self._takes_columns = False
        self._error: SourceError | None = None
        self._link: PartitionReceiver | None = None
        self._task: asyncio.Task[None] | None = None
        self._next = self._expected = number
        self._after: int | None = None
        """The number after the last event that was read before the position."""

        self._last_kept: ReceivedEvent | None = None
        self._lowest: int | None = None
        self._may_begin_late = False
        self._is_compacted = False

    async def begin(self, start: Start | None) -> None:
        """Begin in a file, or with ``None`` in the hub.

        Raises:
            SourceError: the hub cannot be read.
        """
        if start is None:
            await self._go_live(self._position)
        else:
            self._log.info("capture_begun", file=start.file.name)
            self._task = asyncio.create_task(self._read(start))

    # --- what the processor calls ------------------------------------------------------------

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        await asyncio.sleep(0)  # let other tasks run, even if events are always waiting
        until_s = self._clock() + wait_max.total_seconds()
        if not self._is_ready and wait_max > timedelta(0):
            try:
                async with asyncio.timeout_at(until_s):
                    while not self._is_ready:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                return ()
        if self._buffer:
            return self._take(events_max)
        if self._error is not None:
            raise self._error
        if self._link is None:
            return ()
        left = timedelta(seconds=max(0.0, until_s - self._clock()))
        return await self._receive_live(self._link, events_max, left)

    def read_columns(self) -> None:
        with needing("columns"):
            from eventproc.sources.capture._columns import CapturedBatch  # noqa: PLC0415

        self._kind = CapturedBatch
        self._takes_columns = True
        if self._link is not None:
            self._link.read_columns()

    async def close(self) -> None:
        self._end(SourceUnavailableError("the receiver is closed"))
        self._buffer.clear()
        self._held = ()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        if self._link is not None:
            await self._link.close()

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return (self._link and self._link.last_enqueued) or self._last_enqueued

    @property
    def first_sequence_number(self) -> int | None:
        return self._lowest

    @property
    def is_over(self) -> bool:
        """Whether the receiver has ended."""
        return self._error is not None

    @property
    def _is_ready(self) -> bool:
        return bool(self._buffer) or self._error is not None or self._link is not None

    def _end(self, error: SourceError) -> None:
        """End the receiver. Later calls do not replace the first error."""
        self._error = self._error or error
        self._changed.set()

    # --- from the files ----------------------------------------------------------------------

    async def _read(self, start: Start) -> None:
        try:
            await self._read_files(start)
            position = self._position
            if self._next is not None:
                position = EventPosition.from_sequence_number(self._next, is_inclusive=True)
            await self._go_live(position)
        except SourceError as error:
            self._end(error)
        except Exception as error:  # noqa: BLE001 - ``receive`` raises it
            failure = SourceUnavailableError(f"Capture files cannot be read: {error_text(error)}")
            failure.__cause__ = error
            self._end(failure)

    async def _read_files(self, start: Start) -> None:
        """Read files until the hub has the next event, and there are no more."""
        try:
            last = start.file
            await self._read_file(last, start.is_before)
            seen = wanted = None
            while last != seen:  # Look twice: a file may arrive while retention deletes events.
                seen = last
                async for file in self._files.following(last):
                    await self._read_file(file, start.is_before)
                    last = file
                # Without a number, no file has the position: the hub is asked for it.
                wanted = self._after if self._next is None else self._next
                if wanted is None or await self._live_has(wanted):
                    return
            if self._next is None and await self._live_begins_before(start.is_before):
                return
            assert wanted is not None
            self._lose(wanted, f"file {last.name} is the last one", self._live_first)
            self._may_begin_late = True
        except _LiveHasItError:
            return

    async def _read_file(self, file: CapturedFile, is_before: IsBefore) -> None:
        if self._clock() > self._asked_s + _ASK_EVERY_S:
            self._note_properties(await self._live.partition_properties(self._partition_id))
        async for batches in self._files.content(file, _DOWNLOAD_BYTES):
            for batch in batches:
                if self._last_kept is not None:
                    await self._keep(file, batch)
                elif is_before(batch[-1]):
                    self._after = batch.numbers[-1] + 1
                else:
                    begin = next(at for at, event in enumerate(batch) if not is_before(event))
                    if begin:
                        self._after = batch.numbers[begin - 1] + 1
                    await self._keep(file, batch[begin:])

    async def _keep(self, file: CapturedFile, batch: CapturedEvents) -> None:
        """Put the events into the buffer that continue what is there."""
        numbers = batch.numbers
        begin = 0
        while begin < len(numbers):
            first = numbers[begin]
            if self._next is None:
                await self._check_begin(file, first)
                self._next = first
            if first < self._next:
                self._check_overlap(file, batch[begin])
                begin += 1
                continue
            if first > self._next:
                if await self._live_has(self._next):
                    raise _LiveHasItError
                self._lose(self._next, f"file {file.name} goes on with {first}", first)
                self._next = first
            end = len(numbers)
            if numbers[begin:] != tuple(range(first, first + end - begin)):
                end = begin + 1
                while numbers[end] == first + end - begin:
                    end += 1
            await self._put(file, batch[begin:end])
            self._next = first + end - begin
            self._last_kept = batch[end - 1]
            begin = end

    async def _check_begin(self, file: CapturedFile, first: int) -> None:
        """Look for events between the last one before the position and the first one after it."""
        if self._after is None or first <= self._after:
            return
        if await self._live_has(self._after):
            raise _LiveHasItError
        self._lose(self._after, f"file {file.name} goes on with {first}", first)

    def _check_overlap(self, file: CapturedFile, event: ReceivedEvent) -> None:
        """Refuse an event that is no copy of one before: it is newer and has a lower number."""
        newest = self._last_kept
        if newest is not None and event.enqueued_time > newest.enqueued_time + SAME_TIME:
            raise SourceRejectedError(
                f"Capture file {file.name} has event {event.sequence_number}, which is newer "
                f"than event {newest.sequence_number}: the hub was deleted and created again in "
                "between. Give the time of that as `since`, to leave the files of the former hub "
                "out"
            )

    async def _put(self, file: CapturedFile, batch: CapturedEvents) -> None:
        while self._count >= _ROOM or self._byte_count >= _ROOM_BYTES:
            self._has_room.clear()
            await self._has_room.wait()
        self._buffer.append((file, batch))
        self._count += len(batch)
        self._byte_count += batch.body_byte_count
        self._changed.set()
        await asyncio.sleep(0)

    def _take(self, events_max: int) -> Sequence[ReceivedEvent]:
        """Return the next events of the files, as far as there is no gap between them."""
        name = self._buffer[0][0].name
        parts: list[CapturedEvents] = []
        while self._buffer and events_max:
            file, batch = self._buffer[0]
            if parts and batch.numbers[0] != parts[-1].numbers[-1] + 1:
                break  # The next call has a ``first_sequence_number`` of its own.
            self._buffer.popleft()
            if len(batch) > events_max:
                self._buffer.appendleft((file, batch[events_max:]))
                batch = batch[:events_max]
            parts.append(batch)
            events_max -= len(batch)
        taken = self._kind.joined(parts)
        self._count -= len(taken)
        self._byte_count -= taken.body_byte_count
        self._has_room.set()
        first = taken.numbers[0]
        if self._expected is not None and first > self._expected:
            self._lowest = first
        self._expected = taken.numbers[-1] + 1
        if self._takes_columns:
            return taken
        try:
            return list(taken)
        except (ValueError, TypeError, OverflowError) as error:
            raise DamagedFileError(name, f"an event cannot be read ({error})") from error

    # --- from the hub ------------------------------------------------------------------------

    async def _go_live(self, position: EventPosition) -> None:
        link = await self._live.open_receiver(self._group, self._partition_id, position)
        if self._takes_columns:
            link.read_columns()
        if self._task is not None:
            self._log.info("capture_ended", sequence_number=self._next)
        self._link = link
        self._changed.set()

    async def _receive_live(
        self, link: PartitionReceiver, events_max: int, wait_max: timedelta
    ) -> Sequence[ReceivedEvent]:
        events = self._held or await link.receive(events_max=events_max, wait_max=wait_max)
        if not events:
            return events
        missing = self._missing_in(events)
        if missing is not None and not self._is_compacted:
            self._held = events
            await self._explain(*missing)
        if self._held:
            events, self._held = self._held[:events_max], self._held[events_max:]
        self._expected = events[-1].sequence_number + 1
        return events

    def _missing_in(self, events: Sequence[ReceivedEvent]) -> tuple[int, int] | None:
        """Return the first number that is missing, and the number of the event that follows."""
        wanted = self._expected
        if wanted is None or events[-1].sequence_number - wanted + 1 == len(events):
            return None
        for event in events:
            if event.sequence_number > wanted:
                return wanted, event.sequence_number
            wanted = event.sequence_number + 1
        return None

    async def _explain(self, missing: int, found: int) -> None:
        """Find out why an event did not come from the hub.

        Raises:
            SourceUnavailableError: retention deleted it; a file may have it.
        """
        if await self._live_has(missing):
            self._is_compacted = True
        elif self._may_begin_late:
            self._lowest = found
        else:
            error = SourceUnavailableError(
                f"retention deleted events {missing} to {found - 1} before they were received: "
                "they are looked for in Capture files"
            )
            self._end(error)
            raise error
        self._may_begin_late = False

    async def _live_has(self, number: int) -> bool:
        properties = await self._live.partition_properties(self._partition_id)
        self._note_properties(properties)
        return self._live_first <= number

    async def _live_begins_before(self, is_before: IsBefore) -> bool:
        """Whether the hub has an event before the position, and so all that come after it."""
        link = await self._live.open_receiver(
            self._group, self._partition_id, EventPosition.earliest()
        )
        try:
            events = await link.receive(events_max=1, wait_max=_FIRST_WITHIN)
        finally:
            await link.close()
        return bool(events) and is_before(events[0])

    def _lose(self, missing: int, where: str, found: int) -> None:
        """Accept that the events from *missing* to before *found* are lost, if that is wanted.

        Raises:
            SourceRejectedError: it is not.
        """
        if not self._skips_lost:
            raise lost(self._partition_id, missing, found, where, self._live_first)

    def _note_properties(self, properties: PartitionProperties) -> None:
        self._asked_s = self._clock()
        self._live_first = first_in(properties)
        self._last_enqueued = LastEnqueued(
            sequence_number=properties.last_enqueued_sequence_number,
            offset=properties.last_enqueued_offset,
            enqueued_time=properties.last_enqueued_time,
        )


class _LiveHasItError(Exception):
    """The next event is in no file, but in the hub. Never leaves the receiver."""


def first_in(properties: PartitionProperties) -> int:
    """Return the lowest number that the hub can deliver, which may be that of its next event."""
    if properties.is_empty:
        return properties.last_enqueued_sequence_number + 1
    return properties.beginning_sequence_number


def lost(
    partition_id: str, missing: int, found: int, where: str, live_first: int
) -> SourceRejectedError:
    """Return the error for events that neither a file nor the hub has."""
    return SourceRejectedError(
        f"events {missing} to {found - 1} of partition {partition_id} are lost: {where}, and the "
        f"hub begins at {live_first}. If a file is late, or can be restored, put it into its "
        "place; to go on without them, set skips_lost (in the command --capture ...&lost=skip), or "
        f"move the checkpoint to {found - 1} (`eventproc checkpoints reset`)"
    )
