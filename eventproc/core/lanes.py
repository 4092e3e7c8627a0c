"""Within one partition: which events may be handled at once, and how far all is done.

Rule 1: two events of one key are never out at the same time, and go out in their order.
Rule 2: the position is the newest event below which nothing is unfinished; what is done above it
is kept beside it, so that after a crash only what was out comes again.
Rule 3: whatever is forgotten of that (there is a bound) is handled again, never skipped.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventproc.models import SequenceRange

_E = TypeVar("_E")
_M = TypeVar("_M")


class KeyQueues(Generic[_E]):
    """Events waiting for a lane, in a queue for each key; the key longest ready goes first.

    A key is *ready* while it has waiting events and none that is out.
    """

    def __init__(self) -> None:
        self._queue_by_key: dict[Hashable, deque[_E]] = {}
        self._ready: deque[Hashable] = deque()
        self._out: set[Hashable] = set()

    def __bool__(self) -> bool:
        """Whether some key is ready."""
        return bool(self._ready)

    def add(self, key: Hashable, event: _E) -> None:
        """Put an event behind all others of its key."""
        queue = self._queue_by_key.get(key)
        if queue is not None:
            queue.append(event)
            return
        self._queue_by_key[key] = deque((event,))
        if key not in self._out:
            self._ready.append(key)

    def take(self, events_max: int) -> tuple[Hashable, list[_E]]:
        """Send out the oldest events of the key that is ready for longest."""
        key = self._ready.popleft()
        queue = self._queue_by_key[key]
        events = [queue.popleft() for _ in range(min(events_max, len(queue)))]
        if not queue:
            del self._queue_by_key[key]
        self._out.add(key)
        return key, events

    def back(self, key: Hashable) -> None:
        """What was taken of this key is not out any more."""
        self._out.remove(key)
        if key in self._queue_by_key:
            self._ready.append(key)


@dataclass(frozen=True, slots=True)
class _Span:
    """Neighbouring events that are done, by the order in which they were admitted."""

    last: int
    numbers: SequenceRange


class Watermark(Generic[_M]):
    """How far a partition is done, whatever the order in which its events are finished.

    Args:
        sequence_number: The last event that is done, and all below it; ``None``: not known.
        completed: What is known to be done above it.
    """

    def __init__(
        self, sequence_number: int | None = None, completed: Iterable[SequenceRange] = ()
    ) -> None:
        self.sequence_number = sequence_number
        self.mark: _M | None = None
        """What was admitted with the event at the position; ``None`` before it rose."""

        self._restored = sorted(completed)
        self._admitted_number = -1 if sequence_number is None else sequence_number
        self._admitted_count = 0
        self._passed_count = 0
        """How many of the admitted ones the position has passed."""

        self._admitted: deque[tuple[int, _M]] = deque()
        """What it has not passed."""

        self._order_by_number: dict[int, int] = {}
        """What is admitted and not done, with its place in the order."""

        self._span_by_first: dict[int, _Span] = {}
        self._first_by_last: dict[int, int] = {}

    @property
    def unfinished_count(self) -> int:
        """How many events were admitted and are not done."""
        return len(self._order_by_number)

    @property
    def window_size(self) -> int:
        """How many events lie above the position, done or not."""
        return len(self._admitted)

    def admit(self, sequence_number: int, mark: _M) -> bool:
        """Take in the next event in order; return whether it is still to be handled.

        It is not if it was admitted before, or was done before the last restart.
        """
        if sequence_number <= self._admitted_number:
            return False
        self._admitted_number = sequence_number
        self._admitted.append((sequence_number, mark))
        order = self._admitted_count
        self._admitted_count += 1
        if self._was_done(sequence_number):
            self._join(order, sequence_number)
            self._rise()
            return False
        self._order_by_number[sequence_number] = order
        return True

    def is_wanted(self, sequence_number: int) -> bool:
        """Whether the event was neither admitted nor done before the last restart."""
        return sequence_number > self._admitted_number and not self._was_done(sequence_number)

    def is_unfinished(self, sequence_number: int) -> bool:
        """Whether the event was admitted and is not done."""
        return sequence_number in self._order_by_number

    def complete(self, sequence_numbers: Iterable[int]) -> int:
        """Note that these events are done; return how many of them were not known to be."""
        count = 0
        for number in sequence_numbers:
            order = self._order_by_number.pop(number, None)
            if order is not None:
                self._join(order, number)
                count += 1
        self._rise()
        return count

    def completed(self, ranges_max: int) -> tuple[SequenceRange, ...]:
        """What is done above the position: sorted, disjoint, the lowest ones.

        A range may cover numbers that no event has. What was done before the last restart and
        did not come by yet is still told.
        """
        ranges = [span.numbers for _, span in sorted(self._span_by_first.items())]
        if self._restored and self._restored[-1].last > self._admitted_number:
            ranges += [
                SequenceRange(max(found.first, self._admitted_number + 1), found.last)
                for found in self._restored
                if found.last > self._admitted_number
            ]
        return tuple(ranges[:ranges_max])

    def _was_done(self, sequence_number: int) -> bool:
        index = bisect_right(self._restored, sequence_number, key=lambda found: found.first)
        return index > 0 and sequence_number <= self._restored[index - 1].last

    def _join(self, order: int, number: int) -> None:
        """Add one done event to the spans of its neighbours."""
        first, last, first_number, last_number = order, order, number, number
        if order - 1 in self._first_by_last:
            first = self._first_by_last.pop(order - 1)
            first_number = self._span_by_first.pop(first).numbers.first
        if order + 1 in self._span_by_first:
            after = self._span_by_first.pop(order + 1)
            last, last_number = after.last, after.numbers.last
        self._span_by_first[first] = _Span(last, SequenceRange(first_number, last_number))
        self._first_by_last[last] = first

    def _rise(self) -> None:
        """Let the position pass what is done right above it."""
        span = self._span_by_first.pop(self._passed_count, None)
        if span is None:
            return
        del self._first_by_last[span.last]
        while self._passed_count <= span.last:
            self.sequence_number, self.mark = self._admitted.popleft()
            self._passed_count += 1
