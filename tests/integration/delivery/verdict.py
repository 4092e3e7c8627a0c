"""What a storm must not have done: pure judgements of what was told, and when what was struck."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eventproc.cli.terminal.exits import BAD_INPUT, FAILED, OK, UNREACHABLE

BAD_LINE: Final = re.compile(r"Traceback|never retrieved|was destroyed|never awaited")
ABANDONED: Final = "checkpoint_abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """Something that was done to one process, or to all of them."""

    kind: str
    """``kill``, ``freeze`` or ``outage``."""

    owner_id: str
    """Whose; empty for an outage of the store, which strikes all."""

    begun_s: float
    ended_s: float

    def strikes(self, owner_ids: Collection[str], since_s: float, until_s: float) -> bool:
        """Whether it hit one of them within that time."""
        is_theirs = not self.owner_id or self.owner_id in owner_ids
        return is_theirs and self.begun_s <= until_s and self.ended_s >= since_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """One event that one process told of."""

    owner_id: str
    partition_id: str
    number: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended that nobody killed."""

    owner_id: str
    code: int
    begun_s: float
    asked_s: float | None
    """When it was sent SIGTERM; ``None``: never."""

    ended_s: float
    output: str


def lost(handled: Sequence[Handled], published: Mapping[str, int]) -> Iterator[str]:
    """Events that nobody handled."""
    seen = {(one.partition_id, one.number) for one in handled}
    for partition_id, count in published.items():
        missing = [n for n in range(count) if (partition_id, n) not in seen]
        if missing:
            yield f"lost: {len(missing)} of partition {partition_id}, first {missing[:5]}"


def passed_over(handled: Sequence[Handled]) -> Iterator[str]:
    """Events that came before one that lies below them had ever come."""
    newest: dict[str, int] = defaultdict(lambda: -1)
    for one in handled:
        if one.number > newest[one.partition_id] + 1:
            yield (
                f"order: {one.owner_id} handled {one.partition_id}/{one.number} when "
                f"{newest[one.partition_id]} was the newest"
            )
        newest[one.partition_id] = max(newest[one.partition_id], one.number)


def unexplained(
    handled: Sequence[Handled], blows: Sequence[Blow], *, stored_within_s: float, lasts_s: float
) -> Iterator[str]:
    """Events that came again although nothing had happened to those that handled them.

    Args:
        handled: In the order in which it was told.
        blows: All of them.
        stored_within_s: When at the latest the position of an event is stored, in calm.
        lasts_s: For how long a process feels a freeze or an outage that is over.
    """
    before: dict[tuple[str, int], Handled] = {}
    for one in handled:
        first = before.get((one.partition_id, one.number))
        before[one.partition_id, one.number] = one
        if first is None:
            continue
        # Whatever kept the first one from storing its position struck before it would have, ...
        until_s = min(one.at_s, first.at_s + stored_within_s)
        # ... or the first one had taken over, and the second woke up with an event in its hands.
        if any(
            blow.strikes({first.owner_id}, first.at_s - lasts_s, until_s)
            or (blow.kind == "freeze" and blow.strikes({one.owner_id}, first.at_s, one.at_s))
            for blow in blows
        ):
            continue
        yield (
            f"twice: {one.partition_id}/{one.number} by {first.owner_id}, and by {one.owner_id} "
            f"{one.at_s - first.at_s:.3f} s later, and nothing had happened to them"
        )


def again_in_calm(handled: Sequence[Handled], calm_from: Mapping[str, int]) -> Iterator[str]:
    """Events of the calm that came more than once, though processes only came and went."""
    seen: set[tuple[str, int]] = set()
    for one in handled:
        place = (one.partition_id, one.number)
        if one.number >= calm_from[one.partition_id] and place in seen:
            yield f"twice in calm: {one.partition_id}/{one.number}, by {one.owner_id} again"
        seen.add(place)


def odd_exits(exits: Sequence[Exit], blows: Sequence[Blow]) -> Iterator[str]:
    """Exit codes that mislead a supervisor, by docs/operations.md."""
    outages = [blow for blow in blows if blow.kind == "outage"]
    for one in exits:
        owner_ids = {one.owner_id}
        was_cut_off = any(o.strikes(owner_ids, one.begun_s, one.ended_s) for o in outages)
        was_struck = one.asked_s is not None and any(
            blow.strikes(owner_ids, one.asked_s, one.ended_s) for blow in blows
        )
        is_right = (
            (one.code == OK and one.asked_s is not None and ABANDONED not in one.output)
            or (one.code == UNREACHABLE and was_cut_off)
            or (one.code == FAILED and was_struck)
        )
        if one.code == BAD_INPUT or not is_right:
            asked = "after SIGTERM" if one.asked_s is not None else "by itself"
            last = one.output.strip().rpartition("\n")[2][:300]
            yield f"exit: {one.owner_id} ended {asked} with {one.code}: {last}"


def bad_lines(output_by_name: Mapping[str, str]) -> Iterator[str]:
    """Lines that say that an error, or a task, was dropped."""
    for name, output in output_by_name.items():
        for number, line in enumerate(output.splitlines(), start=1):
            if BAD_LINE.search(line):
                yield f"output: {name}:{number}: {line[:300]}"
