"""The history of a group: who owned what, totals, and a log, in bounded memory.

The bound: two hours, and at most ``MOVES_MAX`` changes of an owner, ``SAMPLES_MAX`` samples,
``ENTRIES_MAX`` entries of the log and ``GAPS_MAX`` gaps; whichever is reached first. Of what was
dropped, only the owner of each partition at the new begin is kept. With names of 40 characters that
is about 40 MB at most, however long it runs and whatever the group does.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple, TypeVar

from eventproc._core.watching.changes import Entry
from eventproc._core.watching.group import WatchedGroup

HISTORY_S: Final = 7200.0
MOVES_MAX: Final = 100_000
SAMPLE_SPAN_S: Final = 2.0
"""The least time between two samples."""

SAMPLES_MAX: Final = int(HISTORY_S / SAMPLE_SPAN_S)
ENTRIES_MAX: Final = 1_000
GAPS_MAX: Final = 200


class Holder(NamedTuple):
    """What a partition shows in the picture at one time."""

    owner_id: str | None
    is_expired: bool


class Move(NamedTuple):
    """A change of a partition's holder."""

    number: int
    """The number of the reading that showed it."""

    at_s: float
    partition_id: str
    holder: Holder


class Sample(NamedTuple):
    """Totals of a group at one time; ``None`` for what is not known."""

    number: int
    at_s: float
    lag: int | None
    arrival_per_s: float | None
    drain_per_s: float | None
    members: int
    unserved: int
    stuck: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which the group was not read."""

    begin_s: float
    end_s: float


class History:
    """The history; each reading is added to it, and the oldest ones are dropped."""

    def __init__(self, *, moves_max: int = MOVES_MAX) -> None:
        self._moves_max = moves_max
        self.number = 0
        """The number of the newest reading; the first one has number 1."""

        self.begin_s: float | None = None
        """When the history begins; ``None`` before the first reading."""

        self.base: dict[str, Holder] = {}
        """The holder of each partition at the begin."""

        self.moves: deque[Move] = deque()
        self.samples: deque[Sample] = deque()
        self.entries: deque[tuple[int, Entry]] = deque(maxlen=ENTRIES_MAX)
        """Each with the number of its reading."""

        self.gaps: deque[Gap] = deque(maxlen=GAPS_MAX)
        self.dropped_number = 0
        """The number of the newest reading that has lost a move."""

        self._now: dict[str, Holder] = {}
        self._colours: dict[str, int] = {}
        self._at_s = 0.0

    @property
    def colours(self) -> dict[str, int]:
        """A number for each owner in the history: its colour, which it keeps."""
        return self._colours

    def add(
        self, group: WatchedGroup, sample: Sample, entries: Iterable[Entry], *, gap_s: float
    ) -> None:
        """Add one reading and its sample; after more than *gap_s* without a reading, add a gap."""
        if self.begin_s is None:
            self.begin_s = group.at_s
        elif group.at_s - self._at_s > gap_s:
            self.gaps.append(Gap(self._at_s, group.at_s))
        self.number += 1
        self._at_s = group.at_s
        for p in group.partitions:
            holder = Holder(p.owner_id, p.is_expired)
            if self._now.get(p.partition_id) != holder:
                self._now[p.partition_id] = holder
                self.moves.append(Move(self.number, group.at_s, p.partition_id, holder))
        self._add_sample(sample._replace(number=self.number))
        self.entries.extend((self.number, entry) for entry in entries)
        self._forget(group.at_s - HISTORY_S)
        self._colour(group)

    def _add_sample(self, sample: Sample) -> None:
        if len(self.samples) > 1 and sample.at_s - self.samples[-2].at_s < SAMPLE_SPAN_S:
            self.samples.pop()  # Of readings in quick succession, the newest is kept.
        self.samples.append(sample)

    def _forget(self, begin_s: float) -> None:
        while self.moves and (self.moves[0].at_s < begin_s or len(self.moves) > self._moves_max):
            dropped = self.moves.popleft()
            self.base[dropped.partition_id] = dropped.holder
            self.dropped_number = dropped.number
            begin_s = max(begin_s, dropped.at_s)
        assert self.begin_s is not None, "there was a reading"
        self.begin_s = max(self.begin_s, begin_s)
        while (self.samples and self.samples[0].at_s < begin_s) or len(self.samples) > SAMPLES_MAX:
            self.samples.popleft()
        while self.entries and self.entries[0][1].at_s < begin_s:
            self.entries.popleft()
        while self.gaps and self.gaps[0].end_s < begin_s:
            self.gaps.popleft()

    def _colour(self, group: WatchedGroup) -> None:
        """Give each new owner the lowest free number; free those of owners that are forgotten."""
        present = {member.owner_id for member in group.members}
        present |= {holder.owner_id for holder in self._now.values() if holder.owner_id}
        if not present <= self._colours.keys():
            used = present | {move.holder.owner_id for move in self.moves}
            used |= {holder.owner_id for holder in self.base.values()}
            self._colours = {o: n for o, n in self._colours.items() if o in used}
            taken = set(self._colours.values())
            free = (n for n in range(len(taken) + len(present)) if n not in taken)
            for owner_id in sorted(present - self._colours.keys()):
                self._colours[owner_id] = next(free)

    def moves_since(self, number: int) -> Sequence[Move]:
        """Return the moves of readings after this number, in order."""
        return _since(self.moves, number, lambda move: move.number)

    def samples_since(self, number: int) -> Sequence[Sample]:
        """Return the samples after this number, in order."""
        return _since(self.samples, number, lambda sample: sample.number)

    def entries_since(self, number: int) -> Sequence[Entry]:
        """Return the entries of the log after this number, in order."""
        return [entry for _, entry in _since(self.entries, number, lambda pair: pair[0])]


_T = TypeVar("_T")


def _since(items: "deque[_T]", number: int, number_of: "Callable[[_T], int]") -> list[_T]:
    newest = list(takewhile(lambda item: number_of(item) > number, reversed(items)))
    return newest[::-1]
