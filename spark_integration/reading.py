"""Reading planned ranges: every event of them, in order, once; or an error.

Rule 1: what was planned is what comes. A receiver that breaks is opened again behind the last
event, and events that are gone are an error, or counted where the user chose so.
Rule 2: a receiver is closed before the reader of its range returns, however it returns.
Rule 3: no more receivers are open ahead of time than there is patience in memory for: together
they may hold ``prefetchCount`` events.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from eventproc.core.policy import backoff_s
from eventproc.errors import (
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.logs import get_logger
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver
from spark_integration.errors import EventsLostError
from spark_integration.hub import BACKOFF, span_of
from spark_integration.options import SourceOptions
from spark_integration.planning import EventRange

EVENTS_AT_ONCE: Final = 256
"""Taken from a receiver in one call."""

OPEN_AHEAD_MAX: Final = 8
"""Receivers that are opened while earlier ranges of the task are read: opening one costs several
round trips."""

Chunk = tuple[str, Sequence[ReceivedEvent]]
"""A partition id, and events of it."""


def read_ranges(options: SourceOptions, ranges: Sequence[EventRange]) -> Iterator[Chunk]:
    """Read ranges one after another, from synchronous code.

    Raises:
        EventsLostError: events are gone, and ``failOnDataLoss`` is on.
        SourceRejectedError: the hub refuses for good.
        SourceUnavailableError: it was out of reach for longer than ``operationTimeout``.
    """
    longest = max(map(len, ranges), default=0)
    with asyncio.Runner() as runner:
        source_context = options.source.make(options.hub_options(prefetch=longest))
        source = runner.run(source_context.__aenter__())
        reader = _TaskReader(source, options, ranges)
        try:
            while (chunk := runner.run(reader.read())) is not None:
                yield chunk
        finally:
            runner.run(reader.close())
            runner.run(source_context.__aexit__(None, None, None))


class _TaskReader:
    """The ranges of one task, in their order."""

    def __init__(
        self, source: EventSource, options: SourceOptions, ranges: Sequence[EventRange]
    ) -> None:
        self._waiting = deque(RangeReader(source, options, planned) for planned in ranges)
        self._prefetch = options.prefetch

    async def read(self) -> Chunk | None:
        """The next events of some range; ``None`` at the end of the last."""
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


@dataclass(slots=True)
class _Trouble:
    """A time without events: since when, and how often it was tried to end it."""

    begun_at: float
    attempt: int = 0


class RangeReader:
    """Reads one range."""

    def __init__(self, source: EventSource, options: SourceOptions, planned: EventRange) -> None:
        self.partition_id: Final = planned.partition_id
        self._source = source
        self._options = options
        self._planned = planned
        self._next = planned.start
        self._opening: asyncio.Task[PartitionReceiver] | None = None
        self._trouble: _Trouble | None = None
        self._log = get_logger("eventproc.spark", partition_id=planned.partition_id)

    @property
    def left(self) -> int:
        """How many events of the range are still to be read."""
        return self._planned.end - self._next

    def open_soon(self) -> None:
        """Begin to open the receiver, if there is something to read and none is there."""
        if self._opening is None and self.left:
            self._opening = asyncio.create_task(
                self._source.open_receiver(
                    self._options.consumer_group,
                    self.partition_id,
                    EventPosition.from_sequence_number(self._next, is_inclusive=True),
                )
            )

    async def read(self) -> Sequence[ReceivedEvent]:
        """The next events; none at the end of the range."""
        while self.left > 0:
            try:
                events = await self._receive()
            except SourceUnavailableError as error:
                await self.close()
                await self._bear(error)
                continue
            self._recover()
            if events:
                return events
        return ()

    async def close(self) -> None:
        """Close the receiver. Closing twice is fine."""
        opening, self._opening = self._opening, None
        if opening is None:
            return
        opening.cancel()
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            await opening.result().close()

    async def _receive(self) -> Sequence[ReceivedEvent]:
        """Wait for events of the range; leave out what lies before or behind it."""
        self.open_soon()
        assert self._opening is not None
        receiver = await self._opening
        events = await receiver.receive(
            events_max=min(EVENTS_AT_ONCE, self.left), wait_max=self._options.silence_max
        )
        if not events:
            await self._ask_why()
        return self._accept(events)

    def _accept(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        first = self._next
        if events and events[0].sequence_number == first:
            last = events[-1].sequence_number
            if last - first == len(events) - 1 and last < self._planned.end:
                self._next = last + 1
                return events
        accepted = []
        for event in events:
            number = event.sequence_number
            if number < self._next:
                continue  # a receiver may begin early
            self._skip_to(min(number, self._planned.end))
            if number >= self._planned.end:
                break
            accepted.append(event)
            self._next = number + 1
        return accepted

    def _skip_to(self, number: int) -> None:
        """Events before ``number`` will never come."""
        if number <= self._next:
            return
        lost = EventRange(partition_id=self.partition_id, start=self._next, end=number)
        if self._options.fails_on_data_loss:
            raise EventsLostError(lost_message([lost]))
        self._log.warning(
            "planned_events_missing",
            after_sequence_number=lost.start - 1,
            missing_count=len(lost),
        )
        self._next = number

    async def _ask_why(self) -> None:
        """Nothing came: because it is gone, because it never was, or because the link is dead."""
        (properties,) = await self._source.properties_of([self.partition_id])
        span = span_of(properties)
        if span.next < self._planned.end:
            raise SourceRejectedError(recreated_message({self.partition_id: self._planned.end}))
        if span.first > self._next:
            self._skip_to(min(span.first, self._planned.end))
            return
        raise SourceUnavailableError(
            f"{self._planned}: nothing came within {self._options.silence_max}"
        )

    async def _bear(self, error: SourceUnavailableError) -> None:
        """Wait before the next attempt, unless it has lasted too long."""
        now = time.monotonic()
        trouble = self._trouble
        if trouble is None:
            trouble = self._trouble = _Trouble(begun_at=now)
            self._log.warning("range_interrupted", error=str(error), next=self._next)
        trouble.attempt += 1
        wait_s = backoff_s(trouble.attempt, first=BACKOFF.first, most=BACKOFF.most)
        patience_s = self._options.patience.total_seconds()
        if now + wait_s - trouble.begun_at > patience_s:
            raise SourceUnavailableError(self._given_up(error)) from error
        await asyncio.sleep(wait_s)

    def _given_up(self, error: SourceUnavailableError) -> str:
        hint = ""
        if isinstance(error, ReceiverDisplacedError):
            hint = (
                ". Somebody reads this consumer group with exclusive receivers, as processors do: "
                "stop them, or give this query a consumer group of its own"
            )
        return (
            f"{self._planned}: {self.left} of them could not be read for "
            f"{self._options.patience} (operationTimeout): {error}{hint}"
        )

    def _recover(self) -> None:
        if self._trouble is not None:
            self._log.info("range_resumed", attempt_count=self._trouble.attempt, next=self._next)
            self._trouble = None


def lost_message(lost: Sequence[EventRange]) -> str:
    """What to say of events that are gone."""
    return (
        f"retention has passed events that were to be read: {'; '.join(map(str, lost))}. To go on "
        "with what is left, set failOnDataLoss=false: it is counted in the log, and skipped"
    )


def recreated_message(positions: dict[str, int]) -> str:
    """What to say of a hub that ends before it was read to."""
    which = ", ".join(f"{partition!r} before {number}" for partition, number in positions.items())
    return (
        f"the hub ends before the position that this query has reached (partition {which}): it was "
        "deleted and created anew. Start with a new checkpointLocation"
    )
