"""What a group of several SDKs did with every event: lost, handled again, and why."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Event = tuple[str, int]
"""Partition and sequence number."""

Said = Mapping[str, Any]


@dataclass(frozen=True)
class History:
    """What one member printed, and when it was harmed."""

    name: str
    said: Sequence[Said]
    harmed_s: Sequence[tuple[float, float]] = ()

    def is_harmed(self, from_s: float, to_s: float) -> bool:
        """Whether it was frozen or dead at some time in a span."""
        return any(begun_s <= to_s and ended_s >= from_s for begun_s, ended_s in self.harmed_s)


@dataclass(frozen=True)
class Handling:
    """One handling of an event, in one holding of its partition."""

    at_s: float
    member: str
    opened_s: float
    closed_s: float
    """Infinite if the member never said that it closed the partition."""

    is_cut: bool = False
    """Whether an SDK said later, in this holding, that it had handled the event, but not that it
    had checkpointed it: its stop cut the call that did so."""


OURS = "ours"


def handlings(histories: Iterable[History]) -> dict[Event, list[Handling]]:
    """Return the handlings of each event, in order of time."""
    found = defaultdict[Event, list[Handling]](list)
    for history in histories:
        for partition_id in {line["opened"] for line in history.said if "opened" in line}:
            for holding in _holdings(history, partition_id):
                for handling, number in holding:
                    found[partition_id, number].append(handling)
    return {event: sorted(each, key=lambda one: one.at_s) for event, each in found.items()}


def _holdings(history: History, partition_id: str) -> Iterator[list[tuple[Handling, int]]]:
    """Yield what a member handled in each holding of a partition."""
    lines = [line for line in history.said if partition_id in map(line.get, _ABOUT)]
    while lines:
        opened, *lines = lines
        ends = (n for n, line in enumerate(lines) if "opened" in line or "closed" in line)
        end = next(ends, len(lines))
        held, lines = lines[:end], lines[end:]
        closed_s = lines[0]["at_s"] if lines else float("inf")
        stored = [line["sequence_number"] for line in held if "checkpointed" in line]
        yield [
            (
                Handling(
                    at_s=line["at_s"],
                    member=history.name,
                    opened_s=opened["at_s"],
                    closed_s=closed_s,
                    is_cut=not history.name.startswith(OURS)
                    and line["sequence_number"] > max(stored, default=-1),
                ),
                line["sequence_number"],
            )
            for line in held
            if "handled" in line
        ]


def _is_foreign_twice(first: Handling, again: Handling) -> bool:
    return again.member == first.member and not first.member.startswith(OURS)


_ABOUT = ("opened", "handled", "checkpointed", "closed")


def judged(published: set[Event], histories: Sequence[History]) -> tuple[list[str], Counter[str]]:
    """Return what is wrong, and figures.

    An event may be handled again if the member that had handled it was frozen or dead meanwhile;
    if another one opened the partition before that member had closed it, because a foreign SDK
    steals; if a foreign SDK opened a partition again that it had open already, as Java's does now
    and then; or if the stop of a foreign SDK cut the call that stored the position.
    """
    by_name = {history.name: history for history in histories}
    found = handlings(histories)
    wrong = [f"lost: {event}" for event in sorted(published - found.keys())]
    wrong += [f"not published: {event}" for event in sorted(found.keys() - published)]
    counts = Counter(
        events=len(published), after_cut_stops=0, after_faults=0, after_steals=0, after_reopens=0
    )
    for event, each in found.items():
        for first, again in pairwise(each):
            if by_name[first.member].is_harmed(first.at_s, again.at_s):
                counts["after_faults"] += 1
            elif again.opened_s < first.closed_s and again.member != first.member:
                counts["after_steals"] += 1
            elif again.opened_s > first.opened_s and _is_foreign_twice(first, again):
                counts["after_reopens"] += 1
            elif first.is_cut:
                counts["after_cut_stops"] += 1
            else:
                wrong.append(f"unexplained: {event} by {first} and {again}")
    return wrong, counts
