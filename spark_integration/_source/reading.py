"""Reads planned ranges: each of their events once and in order, or an error.

Rule 1: exactly the planned events are delivered. A receiver that breaks is reopened after the last
event. Deleted events are an error, or with ``failOnDataLoss=false`` counted and skipped. A number
that is missing although the partition begins before it was never lost: the hub is compacted.
Rule 2: a receiver is closed before the reader of its range returns or raises.
Rule 3: receivers opened ahead of time buffer at most ``prefetchCount`` events together.
"""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from eventproc._base.logs import ConditionLogger, get_logger
from eventproc.errors import ReceiverDisplacedError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.ports._event_source import FOR_COLUMNS, Gathering
from spark_integration._errors import EventsLostError
from spark_integration._option_names import naming_options
from spark_integration._options import SourceOptions
from spark_integration._source.hub import Outage, span_of
from spark_integration._source.planning import EventRange

EVENTS_AT_ONCE: Final = 10_000
"""Most events that one call takes from a receiver: as many as Spark puts into an Arrow batch."""

GATHERING: Final = Gathering(FOR_COLUMNS.least, timedelta(milliseconds=100))
"""How long a batch waits for more events. They exist in the hub already, and an Arrow batch costs
as much as hundreds of rows, so large batches are cheaper."""

OPEN_AHEAD_MAX: Final = 8
"""Most ranges of a task whose receivers are open at a time. Opening one takes several round trips,
so it starts while earlier ranges are read."""

GAPS_MAX: Final = 10_000
"""After so many gaps within a range the hub is asked again where the partition begins."""

NAMED_MAX: Final = 100
"""Most ranges of lost events in a message: each partition has one, but between the events that a
compacted hub has lost there are others."""

Chunk = tuple[str, Sequence[ReceivedEvent]]
"""A partition id, and events of that partition."""


def read_ranges(options: SourceOptions, ranges: Sequence[EventRange]) -> Iterator[Chunk]:
    """Read ranges one after another, from synchronous code.

    Raises:
        EventsLostError: events were deleted, and ``failOnDataLoss`` is true.
        SourceRejectedError: the hub refuses permanently.
        SourceUnavailableError: the hub was unreachable for longer than ``operationTimeout``.
    """
    longest = max(map(len, ranges), default=0)
    with naming_options(), asyncio.Runner() as runner:
        source_context = options.source.make(options.hub_options(prefetch=longest))
        wait_for = runner.get_loop().run_until_complete
        source = runner.run(source_context.__aenter__())
        reader = _TaskReader(source, options, ranges)
        try:
            # Runner.run would set and reset a signal handler for every chunk.
            while (chunk := wait_for(reader.read())) is not None:
                yield chunk
        finally:
            runner.run(reader.close())
            runner.run(source_context.__aexit__(None, None, None))


class _TaskReader:
    """Reads the ranges of one task, in their order."""

    def __init__(
        self, source: EventSource, options: SourceOptions, ranges: Sequence[EventRange]
    ) -> None:
        self._waiting = deque(RangeReader(source, options, planned) for planned in ranges)
        self._prefetch = options.prefetch

    async def read(self) -> Chunk | None:
        """Return the next events, with their partition; ``None`` at the end of the last range."""
        while self._waiting:
            self._open_ahead()
            reader = self._waiting[0]
            events = await reader.read()
            if events:
                return reader.partition_id, events
            await reader.close()
            self._waiting.popleft()
        return None

    async def close(self) -> None:
        await asyncio.gather(*(reader.close() for reader in self._waiting))

    def _open_ahead(self) -> None:
        held = 0
        for index, reader in enumerate(self._waiting):
            held += reader.left
            if index >= OPEN_AHEAD_MAX or (index > 0 and held > self._prefetch):
                return
            reader.open_soon()


_number: Final = attrgetter("sequence_number")


class RangeReader:
    """Reads one range."""

    def __init__(self, source: EventSource, options: SourceOptions, planned: EventRange) -> None:
        self.partition_id: Final = planned.partition_id
        self._source = source
        self._options = options
        self._planned = planned
        self._next = planned.start
        self._gaps: Sequence[EventRange] = ()
        """Numbers that did not come since the hub was last asked where the partition begins."""

        self._has_gaps = False
        self._opening: asyncio.Task[PartitionReceiver] | None = None
        self._log = get_logger("eventproc.spark", partition_id=planned.partition_id)
        self._outage = Outage(
            ConditionLogger(self._log, "range_interrupted", "range_resumed"), options.patience
        )

    @property
    def left(self) -> int:
        """How many events of the range have not been read yet."""
        return self._planned.end - self._next

    def open_soon(self) -> None:
        """Start to open the receiver, unless it is open or the range is finished."""
        if self._opening is None and self.left:
            self._opening = asyncio.create_task(self._open())

    async def read(self) -> Sequence[ReceivedEvent]:
        """Return the next events; an empty sequence at the end of the range."""
        while self.left > 0:
            try:
                events = await self._receive()
            except SourceUnavailableError as error:
                await self.close()
                await self._wait_out_outage(error)
                continue
            self._outage.end(attempt_count=self._outage.failure_count, next=self._next)
            if events:
                return events
        return ()

    async def close(self) -> None:
        """Close the receiver, if one is open or opening."""
        opening, self._opening = self._opening, None
        if opening is None:
            return
        opening.cancel()
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            await opening.result().close()

    async def _open(self) -> PartitionReceiver:
        receiver = await self._source.open_receiver(
            self._options.consumer_group,
            self.partition_id,
            EventPosition.from_sequence_number(self._next, is_inclusive=True),
        )
        receiver.read_columns()
        return receiver

    async def _receive(self) -> Sequence[ReceivedEvent]:
        """Wait for events; return those inside of the range."""
        self.open_soon()
        assert self._opening is not None
        receiver = await self._opening
        events = await receiver.receive_batch(
            events_max=min(EVENTS_AT_ONCE, self.left),
            wait_max=self._options.silence_max,
            gathering=GATHERING,
        )
        if not events:
            await self._check_silence()
        first_left = receiver.first_sequence_number
        if events and first_left is not None:
            self._skip_to(min(first_left, self._planned.end))
        accepted, following = self._inside(events)
        if first_left is None and not self._options.is_compacted:
            gaps = (*self._gaps, *self._gaps_before(accepted, following))
            self._gaps = await self._checked(gaps, is_end=following == self._planned.end)
        self._next = following
        return accepted

    def _inside(self, events: Sequence[ReceivedEvent]) -> tuple[Sequence[ReceivedEvent], int]:
        """Return the events inside the range, and the number to go on with."""
        if events and _number(events[0]) == self._next and _number(events[-1]) < self._planned.end:
            return events, _number(events[-1]) + 1
        # A receiver may begin before its position, and it reads past the end of the range.
        begin = bisect_left(events, self._next, key=_number)
        end = bisect_left(events, self._planned.end, begin, key=_number)
        accepted = events[begin:end]
        if end < len(events):
            return accepted, self._planned.end
        return accepted, _number(accepted[-1]) + 1 if accepted else self._next

    def _gaps_before(self, events: Sequence[ReceivedEvent], following: int) -> list[EventRange]:
        """Return the numbers up to *following* that no event has."""
        if following - self._next == len(events):
            return []
        ends = [*map(_number, events), following]
        begins = [self._next, *(number + 1 for number in ends)]
        return [
            EventRange(partition_id=self.partition_id, start=begin, end=end)
            for begin, end in zip(begins, ends, strict=False)
            if begin < end
        ]

    async def _checked(self, gaps: Sequence[EventRange], *, is_end: bool) -> Sequence[EventRange]:
        """Ask where the partition begins, because only what is missing before that can be lost.

        The hub is asked at the first gap, at the end, and after ``GAPS_MAX`` of them. Gaps that are
        left for later are returned.
        """
        if not gaps or (self._has_gaps and not is_end and len(gaps) < GAPS_MAX):
            return gaps
        (properties,) = await self._source.properties_of([self.partition_id])
        first = span_of(properties).first
        self._note_lost(
            [replace(gap, end=min(gap.end, first)) for gap in gaps if gap.start < first]
        )
        self._has_gaps = True
        return ()

    def _skip_to(self, number: int) -> None:
        """Treat the events before ``number`` as lost, or as superseded if the hub is compacted."""
        if number > self._next and not self._options.is_compacted:
            self._note_lost(
                [EventRange(partition_id=self.partition_id, start=self._next, end=number)]
            )
        self._next = max(number, self._next)

    def _note_lost(self, lost: Sequence[EventRange]) -> None:
        """Raise if events are lost, or count them."""
        if lost and self._options.fails_on_data_loss:
            raise EventsLostError(lost_message(lost))
        for missing in lost:
            self._log.warning(
                "planned_events_missing",
                after_sequence_number=missing.start - 1,
                missing_count=len(missing),
            )

    async def _check_silence(self) -> None:
        """Find out why no event came: lost events, a recreated hub, or a broken link."""
        (properties,) = await self._source.properties_of([self.partition_id])
        span = span_of(properties)
        if span.next < self._planned.end:
            raise SourceRejectedError(recreated_message({self.partition_id: self._planned.end}))
        if span.first > self._next:
            self._skip_to(min(span.first, self._planned.end))
            return
        raise SourceUnavailableError(
            f"{self._planned}: no event came within {self._options.silence_max}"
        )

    async def _wait_out_outage(self, error: SourceUnavailableError) -> None:
        """Wait before the next attempt; raise if the outage exceeds ``operationTimeout``."""
        wait_s = self._outage.wait_s(error, next=self._next)
        if wait_s is None:
            raise SourceUnavailableError(self._outage_message(error)) from error
        await asyncio.sleep(wait_s)

    def _outage_message(self, error: SourceUnavailableError) -> str:
        hint = ""
        if isinstance(error, ReceiverDisplacedError):
            hint = (
                ". Another program reads this consumer group with exclusive receivers, as "
                "processors do: stop it, or give this query a consumer group of its own"
            )
        return (
            f"{self._planned}: {self.left} of them could not be read for "
            f"{self._options.patience} (operationTimeout): {error}{hint}"
        )


def lost_message(lost: Sequence[EventRange]) -> str:
    """Return the message of an error about deleted events."""
    named = "; ".join(map(str, lost[:NAMED_MAX])) + ("; ..." if len(lost) > NAMED_MAX else "")
    return (
        f"retention deleted events before they were read: {named}. To continue "
        "without them, set failOnDataLoss=false: they are counted in the log and skipped. In a "
        "compacted hub later events of their keys may have superseded them: then set compacted=true"
    )


def recreated_message(positions: dict[str, int]) -> str:
    """Return the message of an error about a hub that ends before the query's position."""
    which = ", ".join(f"{partition!r} before {number}" for partition, number in positions.items())
    return (
        f"the hub ends before the position that this query has reached (partition {which}): it was "
        "deleted and created again. Start with a new checkpointLocation"
    )


def younger_message(positions: dict[str, int], created_at: datetime | None) -> str:
    """Return the message of an error about a hub that is younger than the query's position."""
    which = ", ".join(f"{partition!r}: {number}" for partition, number in positions.items())
    return (
        f"the hub was deleted and created again, at {created_at}, after this query had reached its "
        f"position (partition {which}), which is one of the former hub. Start with a new "
        "checkpointLocation"
    )
