"""The received events of one partition above its position, and which of them are done.

Events that were received together stay together, as one run. An operation on a part of a run reads
only the part's first and last event, and keeps one byte for each event. So it costs nearly the same
for one event and for 10,000, and the other events of an ``EventBatch`` are not decoded.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple, Protocol, TypeVar

from eventproc.models import EventBatch, ReceivedEvent, SequenceRange


class Placed(Protocol):
    """The fields of an event that are needed to move the position to it."""

    @property
    def sequence_number(self) -> int:
        """Where it is in the partition."""

    @property
    def offset(self) -> str:
        """Where to begin reading after it."""

    @property
    def enqueued_time(self) -> datetime:
        """When the hub received it."""


class _WithoutBody(NamedTuple):
    """These fields alone. One for each event of key lanes, and a tuple is the cheapest object."""

    sequence_number: int
    offset: str
    enqueued_time: datetime


_E = TypeVar("_E", bound=Placed)

NUMBER_OF: Final = attrgetter("sequence_number")

_WAITING: Final = 0
_DONE: Final = 1
_DONE_BEFORE: Final = 2
"""By a former owner."""

_DONE_PART: Final = re.compile(rb"[^\0]+")


APART_MAX: Final = 16
"""Up to this many events, each is checked: they may be of one key, with others between them."""


def frozen(events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
    """Return the events as a sequence that nobody modifies."""
    kind = type(events)
    if kind is tuple or (kind is not list and isinstance(events, EventBatch)):
        return events
    return tuple(events)


def without_body(event: Placed) -> Placed:
    """Return what is needed to move the position to an event."""
    return _WithoutBody(event.sequence_number, event.offset, event.enqueued_time)


def above(events: Sequence[_E], number: int) -> Sequence[_E]:
    """Return the events, which are in order, after this sequence number."""
    return events[bisect_right(events, number, key=NUMBER_OF) :]


class _Run:
    """Events that were received together."""

    __slots__ = ("begin", "end", "events", "first", "last", "marks")

    def __init__(self, events: Sequence[Placed]) -> None:
        self.events = events
        self.begin = 0
        """The events before this index were removed."""

        self.end = len(events)
        self.first: int = events[0].sequence_number
        self.last: int = self.first if self.end == 1 else events[-1].sequence_number
        self.marks: bytearray | None = None
        """What is known of each event; ``None``: they all wait."""

    def copied(self) -> "_Run":
        """Return an independent copy, of the same events."""
        run = copy(self)
        run.marks = None if self.marks is None else bytearray(self.marks)
        return run

    def find(self, number: int) -> int:
        """Return the index of the first event with at least this sequence number."""
        guess = number - self.first  # Right where the numbers have no gaps.
        if 0 <= guess < self.end and self.events[guess].sequence_number == number:
            return guess
        return bisect_left(self.events, number, key=NUMBER_OF)

    def mark(self, events: Sequence[Placed], mark: int) -> int:
        """Mark some of the events; return how many of them waited."""
        if self.marks is None:
            self.marks = bytearray(self.end)
        begin, count = self.find(events[0].sequence_number), len(events)
        end = begin + 1 if count == 1 else self.find(events[-1].sequence_number) + 1
        waiting_count = self.marks.count(_WAITING, begin, end)
        if end - begin == count:
            self.marks[begin:end] = bytes((mark,)) * count
        else:
            for event in events:
                self.marks[self.find(event.sequence_number)] = mark
        return waiting_count - self.marks.count(_WAITING, begin, end)

    def done_parts(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last sequence number of each part that is done."""
        for part in _DONE_PART.finditer(self.marks or b"", self.begin):
            yield (
                self.events[part.start()].sequence_number,
                self.events[part.end() - 1].sequence_number,
            )


class Window:
    """Admitted events above a position, in order."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._firsts: list[int] = []
        """The ``first`` of each run, to search by."""

        self._count = 0
        self.done_count = 0
        """How many of them are done."""

    def copied(self) -> "Window":
        """Return an independent copy."""
        window = Window()
        window._runs = [run.copied() for run in self._runs]
        window._firsts = list(self._firsts)
        window._count, window.done_count = self._count, self.done_count
        return window

    def __len__(self) -> int:
        """How many events there are, done or not."""
        return self._count

    @property
    def unfinished_count(self) -> int:
        """How many of them are not done."""
        return self._count - self.done_count

    @property
    def is_held(self) -> bool:
        """Whether an event is done, by this owner, above one that is not."""
        is_waiting = False
        for run in self._runs if self.done_count else ():
            if run.marks is None:
                is_waiting = True
                continue
            begin = run.begin if is_waiting else run.marks.find(_WAITING, run.begin)
            is_waiting = begin >= 0
            if is_waiting and run.marks.find(_DONE, begin) >= 0:
                return True
        return False

    def add(self, events: Sequence[Placed]) -> None:
        """Append events, which nobody modifies later; none of them is done."""
        run = _Run(events)
        self._runs.append(run)
        self._firsts.append(run.first)
        self._count += run.end

    def has_done(self, number: int) -> bool:
        """Whether this is the number of an event that is done."""
        run = self._run_of(number)
        if run is None or run.marks is None or number > run.last:
            return False
        return run.marks[run.find(number)] != _WAITING

    def not_done(self, events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
        """Return those of these events that are not done; of one part of a run, a slice."""
        if not self.done_count or not events:
            return events
        if len(events) <= APART_MAX:
            return tuple(e for e in events if not self.has_done(e.sequence_number))
        first, last = events[0].sequence_number, events[-1].sequence_number
        low = max(bisect_right(self._firsts, first) - 1, 0)
        parts: list[Sequence[ReceivedEvent]] = []
        begin = 0
        for run in self._runs[low : bisect_right(self._firsts, last)]:
            for done_from, done_to in run.done_parts():
                end = bisect_left(events, done_from, begin, key=NUMBER_OF)
                parts.append(events[begin:end])
                begin = bisect_right(events, done_to, end, key=NUMBER_OF)
        parts = [part for part in (*parts, events[begin:]) if part]
        return parts[0] if len(parts) == 1 else tuple(chain.from_iterable(parts))

    def drop_first(self, events: Sequence[Placed]) -> bool:
        """Remove these events if they are the first ones; return whether they were.

        They are not if one of them is done already, or one between them is left out.
        """
        if not self._runs:
            return False
        run, count = self._runs[0], len(events)
        end = run.begin + count
        if end > run.end or events[0].sequence_number != run.events[run.begin].sequence_number:
            return False
        if count > 1 and events[-1].sequence_number != run.events[end - 1].sequence_number:
            return False
        if run.marks is not None and run.marks.count(_WAITING, run.begin, end) < count:
            return False
        self._drop(run, end)
        return True

    def drop_through(self, number: int) -> int:
        """Remove the events up to this sequence number; return how many."""
        before = self._count
        while self._runs and self._firsts[0] <= number:
            run = self._runs[0]
            if run.last > number:
                end = run.find(number + 1)
                if end > run.begin:
                    self._drop(run, end)
                break
            self._drop(run, run.end)
        return before - self._count

    def drop_done(self) -> Placed | None:
        """Remove the first events as far as they are done; return the last one removed."""
        last = None
        while self._runs and (marks := self._runs[0].marks) is not None:
            run = self._runs[0]
            waiting = marks.find(_WAITING, run.begin)
            end = run.end if waiting < 0 else waiting
            if end > run.begin:
                last = run.events[end - 1]
                self._drop(run, end)
            if waiting >= 0:
                break
        return last

    def mark_done(self, events: Sequence[ReceivedEvent], *, before: bool = False) -> int:
        """Note that these events are done; return how many of them were not done before.

        They are in order. Those that were removed are ignored.

        Args:
            events: If they are one part of a run, this reads only the first and the last one.
            before: Whether a former owner completed them.
        """
        if not self._runs or not events:
            return 0
        begin = self._runs[0].events[self._runs[0].begin].sequence_number
        if events[0].sequence_number < begin:
            events = above(events, begin - 1)
        new_count = 0
        while events and (run := self._run_of(events[0].sequence_number)) is not None:
            is_within = events[-1].sequence_number <= run.last
            part = events if is_within else events[: bisect_right(events, run.last, key=NUMBER_OF)]
            new_count += run.mark(part, _DONE_BEFORE if before else _DONE)
            events = () if is_within else events[len(part) :]
        self.done_count += new_count
        return new_count

    def done_ranges(self) -> Iterator[SequenceRange]:
        """Yield the ranges of events that are done; they may include numbers of no event."""
        known: SequenceRange | None = None
        former_last = -1
        for run in self._runs:
            run_first = run.events[run.begin].sequence_number
            for first, last in run.done_parts():
                if known is not None and known.last == former_last and first == run_first:
                    known = SequenceRange(known.first, last)
                    continue
                if known is not None:
                    yield known
                known = SequenceRange(first, last)
            former_last = run.last
        if known is not None:
            yield known

    def _run_of(self, number: int) -> _Run | None:
        """Return the run that this sequence number is in, or that ends before it."""
        at = bisect_right(self._firsts, number) - 1
        return self._runs[at] if at >= 0 else None

    def _drop(self, run: _Run, end: int) -> None:
        """Remove the events of the first run up to an index."""
        self._count -= end - run.begin
        if run.marks is not None:
            waiting_count = run.marks.count(_WAITING, run.begin, end)
            self.done_count -= end - run.begin - waiting_count
        if end == run.end:
            del self._runs[0], self._firsts[0]
        else:
            run.begin = end
