"""Metadata requests to the broker, on a separate thread with a separate consumer.

A request blocks its thread until the broker answers, and finding the newest event means reading the
partition. Neither must delay the thread that receives events.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from eventproc.errors import SourceUnavailableError, SuspectSettingError
from eventproc.models import EventPosition, PartitionProperties
from eventproc.sources.kafka._client import Consumer
from eventproc.sources.kafka._errors import END_OF_PARTITION, error_for
from eventproc.sources.kafka._event import Message, time_of
from eventproc.sources.kafka._offsets import Bounds, offset_in, offset_text

T = TypeVar("T")

SLICE_S: Final = 0.3
"""Timeout of one attempt, in seconds; attempts are repeated within the budget. It bounds how long
``close`` waits."""

PAUSE_S: Final = 0.02
"""Pause between two attempts."""

Question = Callable[[Consumer, float], T]
"""Sends a request with a timeout in seconds, and returns the answer."""


class AdminQueries:
    """Sends metadata requests, one after another."""

    def __init__(self, consumer: Consumer, budget: timedelta) -> None:
        self._consumer = consumer
        self._budget_s = budget.total_seconds()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="eventproc-kafka-ask")
        self._is_closing = False

    async def ask(self, what: str, question: Question[T]) -> T:
        """Send the request, repeatedly if need be, until it is answered or the budget is used up.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: the broker refused permanently.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._ask, what, question)

    async def close(self) -> None:
        """Abandon the request under way, and disconnect."""
        self._is_closing = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._consumer.close)
        self._thread.shutdown(wait=False)

    def _ask(self, what: str, question: Question[T]) -> T:
        until_s = time.monotonic() + self._budget_s
        self._discard_errors()
        last_error = ""
        while True:
            if self._is_closing:
                raise SourceUnavailableError(f"{what}: the source is closed")
            left_s = until_s - time.monotonic()
            try:
                return question(self._consumer, max(0.01, min(SLICE_S, left_s)))
            except SuspectSettingError:
                raise
            except SourceUnavailableError as error:
                last_error = self._check_errors(what) or last_error or str(error)
                if left_s <= SLICE_S:
                    raise SourceUnavailableError(
                        f"{what}: no answer within {self._budget_s:g} s: {last_error}"
                    ) from error
                time.sleep(PAUSE_S)

    def _discard_errors(self) -> None:
        """Discard errors that the client reported before this request."""
        self._consumer.read(0)
        self._consumer.client_errors()

    def _check_errors(self, what: str) -> str:
        """Raise an error that the client reports, which says more than a timeout.

        Returns the text of the last temporary error, if there is one.
        """
        self._consumer.read(0)
        client_errors = self._consumer.client_errors()
        errors = [error_for(what, t.name, t.text) for t in client_errors if t.ends_all]
        # The client also reports "all brokers are down" after a refused credential: raise the
        # error about the credential.
        errors.sort(key=lambda error: type(error) is SourceUnavailableError)
        if errors:
            raise errors[0]
        return client_errors[-1].text if client_errors else ""


def properties_question(partitions: Sequence[int]) -> Question[list[PartitionProperties]]:
    """Return a request for the properties of these partitions."""

    def ask(consumer: Consumer, timeout_s: float) -> list[PartitionProperties]:
        bounds = {p: consumer.bounds(p, timeout_s) for p in partitions}
        newest = _newest(consumer, bounds)
        return [_properties(p, bounds[p], newest.get(p)) for p in partitions]

    return ask


def is_end_needed(partition_id: str, position: EventPosition, bounds: Bounds) -> bool:
    """Return whether the partition's real end has to be found by reading.

    A broker may report an end offset that is lower than the offsets of events which it delivers. So
    a position after that end may be valid, and "latest" may be later.

    Raises:
        SourceRejectedError: the position is not one of Kafka's.
    """
    start = offset_in(partition_id, position)
    return position.is_latest or (start is not None and start > bounds.high)


def end_question(partition: int, bounds: Bounds) -> Question[int]:
    """Return a request for a partition's end offset, found by reading it.

    It may be higher than the end offset that the broker reports.
    """

    def ask(consumer: Consumer, _timeout_s: float) -> int:
        start = max(bounds.low, bounds.high - 1)
        return _read_to_end(consumer, {partition: start}, {partition: bounds})[partition].end

    return ask


def _properties(partition: int, bounds: Bounds, newest: Message | None) -> PartitionProperties:
    last = bounds.low - 1 if newest is None else newest.offset()
    assert last is not None, "a message has an offset"
    return PartitionProperties(
        partition_id=str(partition),
        beginning_sequence_number=bounds.low,
        last_enqueued_sequence_number=last,
        last_enqueued_offset=offset_text(last) if last >= 0 else "",
        last_enqueued_time=None if newest is None else time_of(newest.timestamp()[1]),
        is_empty=newest is None,
    )


def _newest(consumer: Consumer, bounds: Mapping[int, Bounds]) -> dict[int, Message]:
    """Return the newest event of each partition that has one.

    The last offsets may belong to transaction markers or aborted events. So reading starts one
    offset before the end, and each time twice as far back until there is an event.
    """
    newest: dict[int, Message] = {}
    wanted = {p: b.high - 1 for p, b in bounds.items() if b.high > b.low}
    back = 1
    while wanted:
        starts = {p: max(bounds[p].low, start) for p, start in wanted.items()}
        for partition, tail in _read_to_end(consumer, starts, bounds).items():
            if tail.last is not None:
                newest[partition] = tail.last
        wanted = {
            p: bounds[p].high - 1 - back
            for p, start in starts.items()
            if p not in newest and start > bounds[p].low
        }
        back = 2 * back + 1
    return newest


@dataclass(slots=True)
class _Tail:
    """What was read at the end of a partition."""

    end: int
    """The next offset to read."""

    last: Message | None = None
    """The last message that was read."""

    is_read: bool = False
    """Whether the end of the partition was reached."""


def _read_to_end(
    consumer: Consumer, starts: Mapping[int, int], bounds: Mapping[int, Bounds]
) -> dict[int, _Tail]:
    """Read each partition from its start to its end.

    The end offset that a broker reports is not always the real end: some brokers report the
    beginning of the last batch. So reading goes on to the end that the fetch answer contains.
    """
    tails = {partition: _Tail(end=start) for partition, start in starts.items()}
    until_s = time.monotonic() + 10 * SLICE_S
    try:
        for assigned, start in starts.items():
            consumer.assign(assigned, start)
        while not all(tail.is_read for tail in tails.values()):
            if time.monotonic() > until_s:
                _accept_those_in_motion(tails, bounds)
                break
            for message in consumer.read(SLICE_S):
                tail = tails.get(message.partition())
                if tail is not None:
                    _note(tail, message)
            for partition, tail in tails.items():
                if tail.last is not None and tail.end >= max(
                    bounds[partition].high, consumer.high(partition) or 0
                ):
                    tail.is_read = True
    finally:
        for assigned in starts:
            consumer.unassign(assigned)
    return tails


def _note(tail: _Tail, message: Message) -> None:
    error, offset = message.error(), message.offset()
    if error is None:
        tail.last = message
    elif error.name() == END_OF_PARTITION:
        tail.is_read = True
    else:
        raise error_for(f"partition {message.partition()}", error.name(), error.str())
    if offset is not None and offset >= 0:
        tail.end = max(tail.end, offset + (error is None))


def _accept_those_in_motion(tails: Mapping[int, _Tail], bounds: Mapping[int, Bounds]) -> None:
    """Accept the offset that was read last as the end, if events arrive faster than they are read.

    Raises:
        SourceUnavailableError: a partition was not even read up to the end that the broker
            reported.
    """
    for partition, tail in tails.items():
        if not tail.is_read and (tail.last is None or tail.end < bounds[partition].high):
            raise SourceUnavailableError(
                f"the end of partition {partition} was not delivered: read up to offset "
                f"{tail.end}, and the broker reports {bounds[partition].high}"
            )
