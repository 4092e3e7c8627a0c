"""Which events does a batch have, and which task reads which of them? Pure.

Rule 1: everything is counted in sequence numbers; a position is that of the *next* event to read.
Rule 2: the same offsets give the same ranges and the same tasks, so a batch that is run again
reads the same events.
Rule 3: a partition that an offset does not name was born later: its first event has number 0.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Offsets = Mapping[str, int]
"""Of each partition: the sequence number of the next event to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpan:
    """What a hub has of one partition: the events from ``first`` up to but without ``next``."""

    first: int
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRange:
    """Events of one partition: from ``start`` up to but without ``end``."""

    partition_id: str
    start: int
    end: int

    def __post_init__(self) -> None:
        """Refuse what is no range."""
        assert 0 <= self.start <= self.end, self

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"events {self.start} to {self.end - 1} of partition {self.partition_id!r}"


def in_order(partition_ids: Iterable[str]) -> list[str]:
    """Partition ids as people sort them: ``"2"`` before ``"10"``."""
    return sorted(partition_ids, key=lambda partition_id: (len(partition_id), partition_id))


def expired(start: Offsets, spans: Mapping[str, PartitionSpan]) -> list[EventRange]:
    """What was to be read and is gone, because retention passed it."""
    return [
        EventRange(partition_id=partition_id, start=begin, end=spans[partition_id].first)
        for partition_id in in_order(spans)
        if (begin := start.get(partition_id, 0)) < spans[partition_id].first
    ]


def beyond_end(start: Offsets, spans: Mapping[str, PartitionSpan]) -> dict[str, int]:
    """The partitions that end before the position from which they are to be read."""
    return {
        partition_id: start[partition_id]
        for partition_id in in_order(spans)
        if start.get(partition_id, 0) > spans[partition_id].next
    }


def advance(
    start: Offsets, spans: Mapping[str, PartitionSpan], events_max: int | None = None
) -> dict[str, int]:
    """Where a batch ends that begins at ``start`` and has at most so many events.

    Partitions that are known to ``start`` alone stay where they are: a hub never shrinks, but an
    answer may leave one out.
    """
    begins = {p: max(start.get(p, 0), span.first) for p, span in spans.items()}
    waiting = {p: max(spans[p].next - begins[p], 0) for p in in_order(spans)}
    taken = waiting if events_max is None else share(waiting, events_max)
    moved = {p: begins[p] + count for p, count in taken.items() if count or p not in start}
    end = {**start, **moved}
    return {partition_id: end[partition_id] for partition_id in in_order(end)}


def share(wanted: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide ``most`` among those who want some: equal shares, and nobody gets more than wanted.

    What one does not need goes to the others. So a partition with little to read is read at once,
    however long the backlog of another one is, and the tasks of a batch are of a size.
    """
    given = dict.fromkeys(wanted, 0)
    left = most
    by_want = sorted(wanted, key=lambda name: wanted[name])
    for index, name in enumerate(by_want):
        equal = left / (len(by_want) - index)
        # Rounding up for those who come late uses up the rest: they want the most.
        given[name] = min(wanted[name], int(equal) if index < len(by_want) - 1 else left)
        left -= given[name]
    return given


def ranges_between(start: Offsets, end: Offsets) -> list[EventRange]:
    """The events between two offsets; partitions without any are left out."""
    return [
        EventRange(partition_id=partition_id, start=start.get(partition_id, 0), end=stop)
        for partition_id in in_order(end)
        if (stop := end[partition_id]) > start.get(partition_id, 0)
    ]


def tasks_of(
    ranges: Sequence[EventRange],
    *,
    tasks_max: int | None = None,
    events_per_task_max: int | None = None,
) -> list[list[EventRange]]:
    """Deal ranges out to tasks. By default each is a task of its own.

    Args:
        ranges: of different partitions.
        tasks_max: no more tasks than these; ranges are put together so that tasks are of a size.
        events_per_task_max: longer ranges are cut, each piece a task. The first pieces of all
            partitions come first, so that few of one partition run at a time.
    """
    if events_per_task_max is not None:
        cut = [_cut(whole, events_per_task_max) for whole in ranges]
        rounds = max((len(pieces) for pieces in cut), default=0)
        return [[pieces[turn]] for turn in range(rounds) for pieces in cut if turn < len(pieces)]
    if tasks_max is None or len(ranges) <= tasks_max:
        return [[whole] for whole in ranges]
    tasks: list[list[EventRange]] = [[] for _ in range(tasks_max)]
    least = [(0, number) for number in range(tasks_max)]
    for whole in sorted(ranges, key=len, reverse=True):
        size, number = heapq.heappop(least)
        tasks[number].append(whole)
        heapq.heappush(least, (size + len(whole), number))
    return tasks


def _cut(whole: EventRange, most: int) -> list[EventRange]:
    """Pieces of nearly the same size, none above ``most``."""
    count = -(-len(whole) // most)
    cuts = [whole.start + len(whole) * piece // count for piece in range(count + 1)]
    return [
        EventRange(partition_id=whole.partition_id, start=begin, end=end)
        for begin, end in pairwise(cuts)
    ]


def poll_interval_s(wanted_s: float, partition_count: int, questions_per_second: int) -> float:
    """How often the hub may be asked for its ends: as wanted, but within the service's quota."""
    return max(wanted_s, partition_count / questions_per_second)
