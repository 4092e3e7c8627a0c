"""Which events of one partition may be handled at once, and up to where all of them are done.

Rule 1: events of one key are handled in order, and never two at the same time.
Rule 2: the position is the last event up to which every event is done. Events done above it are
kept as ranges in the checkpoint, so after a crash only unfinished events are delivered again.
Rule 3: the number of ranges is bounded. Events of ranges that do not fit are handled again, never
skipped.
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
    """Events waiting for a lane, in a queue for each key; keys are served in order of readiness.

    A key is *ready* while it has waiting events, and none of its events is *out*: being handled.
    """

    def __init__(self) -> None:
        self._queue_by_key: dict[Hashable, deque[_E]] = {}
        self._ready: deque[Hashable] = deque()
        self._out: set[Hashable] = set()

    def __bool__(self) -> bool:
        """Whether some key is ready."""
        return bool(self._ready)

    def add(self, key: Hashable, event: _E) -> None:
        """Append an event to the queue of its key."""
        queue = self._queue_by_key.get(key)
        if queue is not None:
            queue.append(event)
            return
        self._queue_by_key[key] = deque((event,))
        if key not in self._out:
            self._ready.append(key)

    def take(self, events_max: int) -> tuple[Hashable, list[_E]]:
        """Remove and return the oldest events of the key that has been ready for longest."""
        key = self._ready.popleft()
        queue = self._queue_by_key[key]
        events = [queue.popleft() for _ in range(min(events_max, len(queue)))]
        if not queue:
            del self._queue_by_key[key]
        self._out.add(key)
        return key, events

    def back(self, key: Hashable) -> None:
        """Note that the events taken of this key are not being handled any more."""
        self._out.remove(key)
        if key in self._queue_by_key:
            self._ready.append(key)


@dataclass(frozen=True, slots=True)
class _Span:
    """Neighbouring events that are done, by their place in the order of admission."""

    last: int
    numbers: SequenceRange


class Watermark(Generic[_M]):
    """The position up to which all events are done, if events finish in any order.

    Args:
        sequence_number: The position to begin with; ``None`` if it is not known.
        completed: The ranges known to be done above it.
    """

    def __init__(
        self, sequence_number: int | None = None, completed: Iterable[SequenceRange] = ()
    ) -> None:
        self.sequence_number = sequence_number
        self.mark: _M | None = None
        """The value admitted with the event at the position; ``None`` before it rises."""

        self._restored = sorted(completed)
        self._admitted_number = -1 if sequence_number is None else sequence_number
        self._admitted_count = 0
        self._passed_count = 0
        """How many of the admitted events the position has passed."""

        self._admitted: deque[tuple[int, _M]] = deque()
        """The admitted events that it has not passed."""

        self._order_by_number: dict[int, int] = {}
        """The events admitted and not done, with their places in the order of admission."""

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
        """Admit the next event in order; return whether it still has to be handled.

        An event that was admitted before, or was done before the last restart, has not.
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
        """Note that these events are done; return for how many of them that is new."""
        count = 0
        for number in sequence_numbers:
            order = self._order_by_number.pop(number, None)
            if order is not None:
                self._join(order, number)
                count += 1
        self._rise()
        return count

    def completed(self, ranges_max: int) -> tuple[SequenceRange, ...]:
        """Return the lowest *ranges_max* ranges done above the position, sorted and disjoint.

        A range may include numbers that no event has. Ranges from before the last restart are
        included until their events are admitted.
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
        """Raise the position over the events done directly above it."""
        span = self._span_by_first.pop(self._passed_count, None)
        if span is None:
            return
        del self._first_by_last[span.last]
        while self._passed_count <= span.last:
            self.sequence_number, self.mark = self._admitted.popleft()
            self._passed_count += 1
