"""Finds the enqueued time up to which a batch can read all partitions. Pure.

If a batch has every event before one instant and none after it, no partition falls behind the
others in event time. The hub cannot be asked for such an instant, only for the first event of a
partition at a given instant, and each such request opens a receiver. So the search estimates an
instant from the known cuts, has it looked up, adds the answers to the known cuts, and repeats.

Times are whole milliseconds since 1970, the resolution of the service.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, NamedTuple

AIM: Final = 7 / 8
"""The part of the limit that a guess aims at, so that a slightly wrong guess is within it."""

GUESSES_BY_ESTIMATE: Final = 6
"""After this many guesses every second one bisects, because estimates may converge slowly."""


class TimeCut(NamedTuple):
    """The number of a partition's first event enqueued at an instant or later."""

    instant_ms: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Events of one partition, from ``begin`` up to but without ``end``."""

    begin: int
    end: int
    cuts: tuple[TimeCut, ...]
    """The known cuts, ascending in both fields. The first is event ``begin`` at its own time; the
    last is ``end``, one millisecond after the newest event."""

    @classmethod
    def of(cls, known: Collection[TimeCut], *, begin: int, end: int, newest_ms: int) -> "Backlog":
        """Make a backlog from known cuts, which must include that of ``begin``."""
        first_ms = min(cut.instant_ms for cut in known if cut.number == begin)
        # The newest event may have the earlier time, if the service's clock was set back.
        cuts = (TimeCut(min(first_ms, newest_ms), begin), TimeCut(newest_ms + 1, end))
        return reduce(Backlog.with_cut, sorted(known), cls(begin=begin, end=end, cuts=cuts))

    def bounds(self, instant_ms: int) -> tuple[TimeCut, TimeCut]:
        """Return the known cuts around an instant; the same one twice if it is known exactly."""
        at = bisect_left(self.cuts, (instant_ms,))
        if at == len(self.cuts):
            return self.cuts[-1], self.cuts[-1]
        if at == 0 or self.cuts[at].instant_ms == instant_ms:
            return self.cuts[at], self.cuts[at]
        return self.cuts[at - 1], self.cuts[at]

    def is_known(self, instant_ms: int) -> bool:
        """Whether the cut at an instant follows from the known ones."""
        low, high = self.bounds(instant_ms)
        return low.number == high.number

    def count_before(self, instant_ms: int) -> int:
        """How many events were enqueued before an instant; estimated if its cut is unknown."""
        low, high = self.bounds(instant_ms)
        number = low.number
        if high.number > low.number:
            part = (instant_ms - low.instant_ms) / (high.instant_ms - low.instant_ms)
            number += round(part * (high.number - low.number))
        return number - self.begin

    def learn(self, instant_ms: int, first: TimeCut) -> "Backlog":
        """Add the first event at or after an instant, with its own enqueued time."""
        return self.with_cut(TimeCut(instant_ms, first.number)).with_cut(first)

    def with_cut(self, cut: TimeCut) -> "Backlog":
        """Add a cut."""
        low, high = self.bounds(cut.instant_ms)
        # Numbers must not decrease where the service's clock was set back.
        cut = cut._replace(number=min(max(cut.number, low.number), high.number))
        return replace(self, cuts=tuple(sorted({*self.cuts, cut})))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentSearch:
    """Searches for an instant before which there are at most ``room`` events, and not many fewer.

    Call ``guess``, look the instant up, and pass the answers to ``learn``, until ``guess`` returns
    ``None``; then ``ends`` is the result. After each guess a smaller number of events is accepted
    as a result. The result has at least one event: if more than ``room`` events were enqueued in
    the first millisecond, it has all of them.
    """

    backlogs: Mapping[str, Backlog]
    room: int
    low_ms: int
    """An instant before which there are at most ``room`` events."""

    high_ms: int
    """An instant before which there are more."""

    guess_count: int = 0

    @classmethod
    def begin(cls, backlogs: Mapping[str, Backlog], room: int) -> "AlignmentSearch":
        """Start a search in backlogs, none empty, that have more than ``room`` events together."""
        low_ms = min(backlog.cuts[0].instant_ms for backlog in backlogs.values())
        high_ms = max(backlog.cuts[-1].instant_ms for backlog in backlogs.values())
        return cls(backlogs=backlogs, room=room, low_ms=low_ms, high_ms=high_ms)

    def guess(self) -> int | None:
        """Return the next instant to look up; ``None`` if the best known one is good enough."""
        count = self.total_before(self.low_ms)
        if self.high_ms - self.low_ms <= 1 or 0 < self.room <= count << self.guess_count:
            return None
        if self.guess_count > GUESSES_BY_ESTIMATE and self.guess_count % 2:
            return (self.low_ms + self.high_ms) // 2
        aim = int(self.room * AIM)
        instants = range(self.low_ms + 1, self.high_ms)
        after = bisect_right(instants, aim, key=self.total_before)
        return instants[max(after - 1, 0)]

    def unknown(self, instant_ms: int) -> list[str]:
        """Return the partitions whose cut at an instant has to be looked up."""
        return [p for p, backlog in self.backlogs.items() if not backlog.is_known(instant_ms)]

    def learn(self, instant_ms: int, first: Mapping[str, TimeCut]) -> "AlignmentSearch":
        """Add the first event of each ``unknown`` partition at the instant, with its own time."""
        backlogs = {
            p: backlog.learn(instant_ms, first[p]) if p in first else backlog
            for p, backlog in self.backlogs.items()
        }
        learnt = replace(self, backlogs=backlogs, guess_count=self.guess_count + 1)
        if learnt.total_before(instant_ms) <= self.room:
            return replace(learnt, low_ms=instant_ms)
        return replace(learnt, high_ms=instant_ms)

    def ends(self) -> dict[str, int]:
        """Return the end of each partition: the number after its last event before the instant."""
        instant_ms = self.low_ms if self.total_before(self.low_ms) else self.high_ms
        return {p: b.begin + b.count_before(instant_ms) for p, b in self.backlogs.items()}

    def total_before(self, instant_ms: int) -> int:
        """How many events of all partitions were enqueued before an instant; may be an estimate."""
        return sum(backlog.count_before(instant_ms) for backlog in self.backlogs.values())
