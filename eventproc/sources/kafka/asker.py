"""Questions to the broker, asked on a thread of their own by a consumer of their own.

A question blocks its thread until it is answered, and to look at the newest event means to read:
neither may happen where events are waited for.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final, TypeVar

from eventproc.errors import SourceUnavailableError
from eventproc.models import PartitionProperties
from eventproc.sources.kafka.event import Message, enqueued_time
from eventproc.sources.kafka.position import Bounds, offset_text
from eventproc.sources.kafka.refusal import (
    END_OF_PARTITION,
    SuspectSettingError,
    error_for,
)
from eventproc.sources.kafka.vendor import Consumer

T = TypeVar("T")

SLICE_S: Final = 0.3
"""A question is asked again that often until its budget is used up: closing waits no longer."""

PAUSE_S: Final = 0.02

Question = Callable[[Consumer, float], T]
"""Asks, and waits for the answer no longer than so many seconds."""


class Asker:
    """Asks one question after the other."""

    def __init__(self, make_consumer: Callable[[], Consumer], budget: timedelta) -> None:
        """Make the client.

        Raises:
            ConfigurationError: it does not take a setting.
        """
        self._consumer = make_consumer()
        self._budget_s = budget.total_seconds()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="eventproc-kafka-ask")
        self._is_closing = False

    async def ask(self, what: str, question: Question[T]) -> T:
        """Ask until there is an answer, or the budget is used up.

        Raises:
            SourceUnavailableError: no answer; try again.
            SourceRejectedError: it was refused for good.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._ask, what, question)

    async def close(self) -> None:
        """Let the question under way go, and disconnect."""
        self._is_closing = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._consumer.close)
        self._thread.shutdown(wait=False)

    def _ask(self, what: str, question: Question[T]) -> T:
        until_s = time.monotonic() + self._budget_s
        self._listen()
        said = ""
        while True:
            if self._is_closing:
                raise SourceUnavailableError(f"{what}: the source is closed")
            left_s = until_s - time.monotonic()
            try:
                return question(self._consumer, max(0.01, min(SLICE_S, left_s)))
            except SuspectSettingError:
                raise
            except SourceUnavailableError as error:
                said = self._hear(what) or said or str(error)
                if left_s <= SLICE_S:
                    raise SourceUnavailableError(
                        f"{what}: no answer within {self._budget_s:g} s: {said}"
                    ) from error
                time.sleep(PAUSE_S)

    def _listen(self) -> None:
        """Hear, and forget, what the client said of itself before."""
        self._consumer.read(0)
        self._consumer.troubles()

    def _hear(self, what: str) -> str:
        """Raise what the client says of itself, for it tells more than "no answer".

        Returns what it says that may pass.
        """
        self._consumer.read(0)
        troubles = self._consumer.troubles()
        errors = [error_for(what, t.name, t.text) for t in troubles if t.ends_all]
        # "All brokers are down" follows a refused credential; the credential is the reason.
        errors.sort(key=lambda error: type(error) is SourceUnavailableError)
        if errors:
            raise errors[0]
        return troubles[-1].text if troubles else ""


def properties_question(partitions: Sequence[int]) -> Question[list[PartitionProperties]]:
    """Where these partitions begin and end, and their newest events."""

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
        last_enqueued_time=None if newest is None else enqueued_time(newest),
        is_empty=newest is None,
    )


def _newest(consumer: Consumer, bounds: Mapping[int, Bounds]) -> dict[int, Message]:
    """The newest event of each partition that has one.

    The last offset may belong to the mark of a transaction, or to an event that was withdrawn with
    one, so the look goes back until there is an event: twice as far each time.
    """
    newest: dict[int, Message] = {}
    wanted = {p: b.high - 1 for p, b in bounds.items() if b.high > b.low}
    back = 1
    while wanted:
        starts = {p: max(bounds[p].low, start) for p, start in wanted.items()}
        newest |= _last_of_each(consumer, starts, {p: bounds[p].high for p in starts})
        wanted = {
            p: bounds[p].high - 1 - back
            for p, start in starts.items()
            if p not in newest and start > bounds[p].low
        }
        back = 2 * back + 1
    return newest


def _last_of_each(
    consumer: Consumer, starts: Mapping[int, int], highs: Mapping[int, int]
) -> dict[int, Message]:
    """Read each partition from its start to where its end was; return the last message of each."""
    last: dict[int, Message] = {}
    open_partitions = set(starts)
    until_s = time.monotonic() + 10 * SLICE_S
    try:
        for assigned, start in starts.items():
            consumer.assign(assigned, start)
        while open_partitions:
            if time.monotonic() > until_s:
                raise SourceUnavailableError("the newest event was not delivered")
            for message in consumer.read(SLICE_S):
                partition, error = message.partition(), message.error()
                if partition is None or partition not in open_partitions:
                    continue
                if error is not None and error.name() != END_OF_PARTITION:
                    raise error_for(f"partition {partition}", error.name(), error.str())
                if error is None:
                    last[partition] = message
                if error is not None or (message.offset() or 0) >= highs[partition] - 1:
                    open_partitions.discard(partition)
    finally:
        for assigned in starts:
            consumer.unassign(assigned)
    return last
