"""Metadata requests to the broker, on a separate thread with a separate consumer.

A request blocks its thread until the broker answers, and finding the newest event means reading the
partition. Neither must delay the thread that receives events.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final, TypeVar

from eventproc.errors import SourceUnavailableError, SuspectSettingError
from eventproc.models import PartitionProperties
from eventproc.sources.kafka._client import Consumer
from eventproc.sources.kafka._errors import END_OF_PARTITION, error_for
from eventproc.sources.kafka._event import Message, time_of
from eventproc.sources.kafka._offsets import Bounds, offset_text

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

    def __init__(
        self, consumer: Consumer, renew: Callable[[], Consumer], budget: timedelta
    ) -> None:
        self._consumer = consumer
        self._renew = renew
        self._is_stale = False
        """Whether the last request had no answer. The client may have forgotten all brokers, so the
        next request gets a new one."""

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
        if self._is_stale:
            former, self._consumer = self._consumer, self._renew()
            former.abandon()
            self._is_stale = False
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
                    self._is_stale = True
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
        newest |= _last_from(consumer, starts, bounds)
        wanted = {
            p: bounds[p].high - 1 - back
            for p, start in starts.items()
            if p not in newest and start > bounds[p].low
        }
        back = 2 * back + 1
    return newest


def _last_from(
    consumer: Consumer, starts: Mapping[int, int], bounds: Mapping[int, Bounds]
) -> dict[int, Message]:
    """Read each partition from its start to its end; return the last message, if there is one.

    Raises:
        SourceUnavailableError: an end was not reached in time.
    """
    last: dict[int, Message] = {}
    unread = set(starts)
    until_s = time.monotonic() + 10 * SLICE_S
    try:
        for assigned, start in starts.items():
            consumer.assign(assigned, start)
        while unread:
            if time.monotonic() > until_s:
                raise SourceUnavailableError(
                    f"the end of partition {min(unread)} was not delivered, which the broker "
                    f"reports at offset {bounds[min(unread)].high}"
                )
            for message in consumer.read(SLICE_S):
                partition, error = message.partition(), message.error()
                if partition not in starts:
                    continue
                if error is None:
                    last[partition] = message
                    is_end = (message.offset() or 0) + 1 >= bounds[partition].high
                elif error.name() == END_OF_PARTITION:
                    is_end = True
                else:
                    raise error_for(f"partition {partition}", error.name(), error.str())
                if is_end:
                    unread.discard(partition)
    finally:
        for assigned in starts:
            consumer.unassign(assigned)
    return last
