"""What a group of several SDKs did with every event: lost, handled again, and why."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Event = tuple[str, int]
"""Partition and sequence number."""

Said = Mapping[str, Any]

OURS = "ours"

OPENING_MAX_S = 2.0
"""How long before it says that it opened a partition a new owner may have read its position."""


@dataclass(frozen=True)
class History:
    """What one member printed, and when it was harmed."""

    name: str
    said: Sequence[Said]
    harmed_s: Sequence[tuple[float, float]] = ()

    @property
    def is_foreign(self) -> bool:
        """Whether it is of another SDK."""
        return not self.name.startswith(OURS)

    def is_harmed(self, from_s: float, to_s: float) -> bool:
        """Whether it was frozen or dead at some time in a span."""
        return any(begun_s <= to_s and ended_s >= from_s for begun_s, ended_s in self.harmed_s)


@dataclass
class Holding:
    """What a member did with a partition, from opening to closing it."""

    history: History
    partition_id: str
    opened_s: float
    is_reopened: bool
    """Whether the member had it open already."""

    closed_s: float = float("inf")
    """Infinite if the member never said that it closed the partition, nor opened it again."""

    is_lost: bool = False
    """Whether the member, of this library, said that another one took the partition from it."""

    handled: list[tuple[float, int]] = field(default_factory=list)
    stored: list[tuple[float, int]] = field(default_factory=list)
    """Times and positions of its checkpoints."""

    def stored_s(self, number: int) -> float:
        """Return when it had stored the position of an event or a later one; infinite if never."""
        return min((at_s for at_s, stored in self.stored if stored >= number), default=float("inf"))


Handling = tuple[float, Holding]
"""A time at which an event was handled, and in which holding."""


def _holdings(history: History) -> Iterator[Holding]:
    """Yield what a member did with each partition, in order."""
    latest = dict[str, Holding]()
    for line in history.said:
        about = [word for word in ("opened", "handled", "checkpointed", "closed") if word in line]
        if not about:
            continue
        partition_id = line[about[0]]
        holding = latest.get(partition_id)
        if "opened" in line:
            is_open = holding is not None and holding.closed_s == float("inf")
            if holding is not None and is_open:
                holding.closed_s = line["at_s"]
            latest[partition_id] = Holding(history, partition_id, line["at_s"], is_open)
            yield latest[partition_id]
        elif holding is None or (
            "checkpointed" in line and holding.closed_s < line["at_s"] and not history.is_foreign
        ):
            continue  # Ours writes the position that it found before it opens a partition.
        elif "closed" in line:
            holding.closed_s = min(holding.closed_s, line["at_s"])
            holding.is_lost = line.get("is_lost", False)
        else:
            done = holding.handled if "handled" in line else holding.stored
            done.append((line["at_s"], line["sequence_number"]))


class Ledger:
    """What every member did with every partition, as one list in the order of opening."""

    def __init__(self, histories: Iterable[History]) -> None:
        self._holdings = sorted(
            (one for history in histories for one in [*_holdings(history)]),
            key=lambda holding: holding.opened_s,
        )
        self._stored = defaultdict[str, list[tuple[float, int, bool]]](list)
        """Each checkpoint of a partition: its time, its position, whether it is of another SDK."""

        for holding in self._holdings:
            self._stored[holding.partition_id] += [
                (at_s, number, holding.history.is_foreign) for at_s, number in holding.stored
            ]

    def handlings(self) -> Mapping[Event, list[Handling]]:
        """Return the handlings of each event, in order of time."""
        found = defaultdict[Event, list[Handling]](list)
        for holding in self._holdings:
            for at_s, number in holding.handled:
                found[holding.partition_id, number].append((at_s, holding))
        return {event: sorted(each, key=lambda one: one[0]) for event, each in found.items()}

    def why_again(self, number: int, first: Handling, again: Handling) -> str | None:
        """Return what explains that an event was handled again; ``None`` if nothing does.

        Of the two holdings the one that began first is the old one. An event whose position it had
        stored before the other began may be handled again only if a later checkpoint of another SDK
        moved the position back. An event whose position it had not stored may be handled again

        - if the old owner was frozen or dead between its handling and the new owner's opening, or
          at that opening;
        - if the new owner opened the partition before the old one closed it, or the old one closed
          it because it had lost it, and one of them is of another SDK: these steal, and do not
          hand over;
        - if another SDK opened a partition that it had open, or opened one again after it and had
          read the position before it stored its last one;
        - if another SDK closed a partition and did not store what it had handled.
        """
        (old_at_s, old), (_, new) = sorted((first, again), key=lambda one: one[1].opened_s)
        if old.stored_s(number) < new.opened_s - OPENING_MAX_S:
            before = [one for one in self._stored[new.partition_id] if one[0] <= new.opened_s]
            at_s, stored, is_foreign = max(before)
            is_moved_back = is_foreign and stored < number and at_s > old.stored_s(number)
            return "after_late_checkpoints" if is_moved_back else None
        if old.history.is_harmed(min(old_at_s, new.opened_s), new.opened_s):
            return "after_faults"
        is_stored = old.stored_s(number) < float("inf")
        if old.history is new.history and old.history.is_foreign and (new.is_reopened or is_stored):
            return "after_reopens"
        is_mixed = old.history.is_foreign or new.history.is_foreign
        # Another SDK does not say that it lost a partition, and may close it while the new owner
        # opens it, with a position that it read before.
        opening_s = OPENING_MAX_S if old.history.is_foreign else 0
        is_stolen = old.is_lost or new.opened_s - opening_s < old.closed_s
        if is_mixed and is_stolen and old.history is not new.history:
            return "after_steals"
        if old.history.is_foreign and not is_stored:
            return "after_cut_stops"
        return None

    def take_overs(self) -> Counter[str]:
        """Count, for each two SDKs, the new owners that began after the old one's last position."""
        counts = Counter[str]()
        latest = dict[str, Holding]()
        for holding in self._holdings:
            old = latest.get(holding.partition_id)
            if not holding.handled:
                continue
            latest[holding.partition_id] = holding
            begun_after = min(number for _, number in holding.handled) - 1
            if old is not None and begun_after in {number for _, number in old.stored}:
                counts[f"{_sdk(old)} to {_sdk(holding)}"] += old.history is not holding.history
        return +counts

    def handled_when_closed(self) -> list[str]:
        """Return what processors of this library handled after they closed a partition."""
        return [
            f"handled when closed: {holding.history.name}, {holding.partition_id}, {number}"
            for holding in self._holdings
            if not holding.history.is_foreign
            for at_s, number in holding.handled
            if at_s > holding.closed_s
        ]


def _sdk(holding: Holding) -> str:
    return holding.history.name.split()[0]


def judged(
    published: set[Event], histories: Sequence[History]
) -> tuple[list[str], Counter[str], Counter[str]]:
    """Return what is wrong, figures, and the positions that were taken over in each direction."""
    ledger = Ledger(histories)
    found = ledger.handlings()
    wrong = [f"lost: {event}" for event in sorted(published - found.keys())]
    wrong += [f"not published: {event}" for event in sorted(found.keys() - published)]
    wrong += ledger.handled_when_closed()
    counts = Counter({"events": len(published)} | dict.fromkeys(REASONS, 0))
    unexplained = defaultdict[tuple[str, str], list[int]](list)
    for event, each in found.items():
        for first, again in pairwise(each):
            reason = ledger.why_again(event[1], first, again)
            if reason:
                counts[reason] += 1
            else:
                unexplained[_told(first[1]), _told(again[1])].append(event[1])
    wrong += [
        f"unexplained: {len(numbers)} events, {min(numbers)} to {max(numbers)}: {first}; {again}"
        for (first, again), numbers in unexplained.items()
    ]
    return wrong, counts, ledger.take_overs()


REASONS = (
    "after_faults",
    "after_steals",
    "after_reopens",
    "after_cut_stops",
    "after_late_checkpoints",
)


def _told(holding: Holding) -> str:
    stored = [number for _, number in holding.stored]
    return (
        f"{holding.history.name} had partition {holding.partition_id} from {holding.opened_s:.2f} s"
        f" to {holding.closed_s:.2f} s, and stored {stored[-3:]} last"
    )
