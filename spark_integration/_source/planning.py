"""Decides which events a batch has, and which task reads which of them. Pure.

Rule 1: a position is the sequence number of the *next* event to read. Spark's offset log has the
positions of a batch as JSON.
Rule 2: the same offsets give the same ranges and the same tasks, so a batch that is run again
reads the same events.
Rule 3: a partition that is missing in an offset was created later, and is read from event 0 on.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from eventproc._core.delivery.checkpoints import precedes_hub
from eventproc.errors import ConfigurationError

Offsets = Mapping[str, int]
"""The sequence number of the next event to read, by partition id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpan:
    """The events that a hub has of one partition: from ``first`` up to but without ``next``."""

    first: int
    next: int
    last_enqueued_time: datetime | None = None
    """The enqueued time of event ``next - 1``; ``None`` if the source does not know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRange:
    """Events of one partition: from ``start`` up to but without ``end``."""

    partition_id: str
    start: int
    end: int

    def __post_init__(self) -> None:
        """Check the order of ``start`` and ``end``."""
        assert 0 <= self.start <= self.end, self

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"events {self.start} to {self.end - 1} of partition {self.partition_id!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of the events that a read needs; ``None`` is no bound."""

    partition_ids: frozenset[str] | None = None
    first: int | None = None
    last: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    """The last enqueued time that is needed."""

    def narrowed(self, **others: Any) -> "Bounds":  # noqa: ANN401 - its own fields
        """Return what is within these bounds and within others."""
        narrower: Mapping[str, Callable[..., Any]] = {
            "partition_ids": frozenset.intersection,
            "first": max,
            "last": min,
            "since": max,
            "until": min,
        }
        ours = {name: getattr(self, name) for name in others}
        return replace(
            self,
            **{
                name: theirs if ours[name] is None else narrower[name](ours[name], theirs)
                for name, theirs in others.items()
                if theirs is not None
            },
        )

    def has(self, partition_id: str) -> bool:
        """Whether events of a partition may be needed."""
        return self.partition_ids is None or partition_id in self.partition_ids


def in_order(partition_ids: Iterable[str]) -> list[str]:
    """Sort partition ids as numbers: ``"2"`` before ``"10"``."""
    return sorted(partition_ids, key=lambda partition_id: (len(partition_id), partition_id))


def expired(start: Offsets, spans: Mapping[str, PartitionSpan]) -> list[EventRange]:
    """Return the events after ``start`` that retention has deleted."""
    return [
        EventRange(partition_id=partition_id, start=begin, end=spans[partition_id].first)
        for partition_id in in_order(spans)
        if (begin := start.get(partition_id, 0)) < spans[partition_id].first
    ]


def beyond_end(start: Offsets, spans: Mapping[str, PartitionSpan]) -> dict[str, int]:
    """Return the positions of ``start`` that are after the end of their partition."""
    return {
        partition_id: start[partition_id]
        for partition_id in in_order(spans)
        if start.get(partition_id, 0) > spans[partition_id].next
    }


def of_former_hub(
    positions: Offsets, known_since: datetime | None, hub_created_at: datetime | None
) -> dict[str, int]:
    """Return the positions that are of a hub that was deleted and created again.

    Args:
        positions: Of a query.
        known_since: When the hub that has the positions was created; ``None`` if it is not known.
        hub_created_at: When the present hub was created; ``None`` if the source does not say.
    """
    return {
        partition_id: following
        for partition_id, following in positions.items()
        if known_since is not None and precedes_hub(following - 1, known_since, hub_created_at)
    }


def begins_of(start: Offsets, spans: Mapping[str, PartitionSpan]) -> dict[str, int]:
    """Return the first event of each partition, from ``start`` on, that still exists."""
    return {p: max(start.get(p, 0), span.first) for p, span in spans.items()}


def advance(
    start: Offsets, spans: Mapping[str, PartitionSpan], events_max: int | None = None
) -> dict[str, int]:
    """Return the end of a batch that begins at ``start``, with a limit on events (see ``share``).

    Partitions that are in ``start`` but not in ``spans`` keep their position: a hub never loses a
    partition, but an answer may leave one out.
    """
    begins = begins_of(start, spans)
    waiting = {p: max(spans[p].next - begins[p], 0) for p in in_order(spans)}
    taken = waiting if events_max is None else share(waiting, events_max)
    moved = {p: begins[p] + count for p, count in taken.items() if count or p not in start}
    end = {**start, **moved}
    return {partition_id: end[partition_id] for partition_id in in_order(end)}


def waiting_count(start: Offsets, spans: Mapping[str, PartitionSpan]) -> int:
    """Return how many events a batch that begins at ``start`` could have."""
    return sum(max(spans[p].next - begin, 0) for p, begin in begins_of(start, spans).items())


def is_due(count: int, *, least: int, waited_s: float, delay_max_s: float) -> bool:
    """Whether a batch of *count* events is planned now.

    It waits until there are *least* events, but not longer than *delay_max_s* after the batch
    before it: as with ``minOffsetsPerTrigger`` and ``maxTriggerDelay`` of Spark's Kafka source.
    """
    return count >= least or (count > 0 and waited_s >= delay_max_s)


def share(wanted: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide ``most`` events among the partitions in proportion to what each has.

    So partitions of steady but unequal rates end at about the same event time, and a watermark
    drops no events of the slower ones. Each partition that has any events gets at least one, even
    if the sum exceeds ``most`` then, as with Spark's Kafka source. So no partition starves.
    """
    wanting = [name for name, want in wanted.items() if want]
    left = most - len(wanting)
    more = sum(wanted.values()) - len(wanting)
    if left >= more:
        return dict(wanted)
    given = {name: min(want, 1) for name, want in wanted.items()}
    if left <= 0:
        return given
    parts = {name: divmod((wanted[name] - 1) * left, more) for name in wanting}
    for name, (whole, _) in parts.items():
        given[name] += whole
    rest = left - sum(whole for whole, _ in parts.values())
    # The rest goes to the partitions with the largest remainders, one event each.
    for name in sorted(wanting, key=lambda name: parts[name][1], reverse=True)[:rest]:
        given[name] += 1
    return given


def ranges_between(start: Offsets, end: Offsets) -> list[EventRange]:
    """Return the events between two offsets, without empty ranges."""
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
    """Divide ranges among tasks. By default each range is a task.

    Args:
        ranges: of different partitions.
        tasks_max: the most tasks. If there are more ranges, ranges are combined into tasks of
            about equal size.
        events_per_task_max: longer ranges are divided into pieces, each piece a task. The first
            pieces of all partitions come first, so that few tasks read one partition at a time.
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
    """Divide a range into pieces of nearly equal size, none above ``most``."""
    count = -(-len(whole) // most)
    cuts = [whole.start + len(whole) * piece // count for piece in range(count + 1)]
    return [
        EventRange(partition_id=whole.partition_id, start=begin, end=end)
        for begin, end in pairwise(cuts)
    ]


def poll_interval_s(wanted_s: float, partition_count: int, requests_per_second: int) -> float:
    """Return the interval between polls of the hub: as wanted, but within the service's quota."""
    return max(wanted_s, partition_count / requests_per_second)


FORMAT_VERSION: Final = 1

Json = Mapping[str, object]


def to_json(
    hub: str, offsets: Offsets, hub_created_at: datetime | None = None
) -> dict[str, object]:
    """Return an offset's JSON. Equal offsets give equal JSON, because Spark compares the texts.

    Args:
        hub: Namespace and hub.
        offsets: The positions.
        hub_created_at: When the hub that has them was created; ``None`` if its source does not say.
    """
    created = {} if hub_created_at is None else {"created": hub_created_at.isoformat()}
    return {
        "version": FORMAT_VERSION,
        "hub": hub,
        **created,
        "next": {partition_id: offsets[partition_id] for partition_id in in_order(offsets)},
    }


def from_json(hub: str, offset: Json) -> dict[str, int]:
    """Return the offset in a JSON object.

    Raises:
        ConfigurationError: it belongs to another hub, or a later release wrote it.
    """
    if offset.get("version") != FORMAT_VERSION:
        raise ConfigurationError(
            f"the query's checkpointLocation has offsets of version {offset.get('version')!r}, but "
            f"this release reads version {FORMAT_VERSION}: run the release that wrote them"
        )
    if offset.get("hub") != hub:
        raise ConfigurationError(
            f"the query's checkpointLocation belongs to hub {offset.get('hub')!r}, but the options "
            f"name {hub!r}: give this query a checkpointLocation of its own"
        )
    following = offset.get("next")
    assert isinstance(following, Mapping), offset
    return {str(partition_id): int(number) for partition_id, number in following.items()}


def hub_created_in(offset: Json) -> datetime | None:
    """Return when the hub of an offset was created; ``None`` if the offset does not say."""
    created = offset.get("created")
    return None if created is None else datetime.fromisoformat(str(created))
