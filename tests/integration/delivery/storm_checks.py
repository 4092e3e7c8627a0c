"""Checks of a storm, as pure functions of the journal, the faults and the exits."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eventproc._command.terminal.exits import BAD_INPUT, FAILED, OK, UNREACHABLE

ERROR_LINE: Final = re.compile(r"Traceback|never retrieved|was destroyed|never awaited")
ABANDONED: Final = "checkpoint_abandoned"

WAKES_WITHIN_S: Final = 0.5
"""How soon a resumed process ends the event that it was frozen with: on two cores it has to wait
for its turn, and the new owner continues meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that was injected into one process, or into all of them."""

    kind: str
    """``kill``, ``freeze``, ``outage`` (of the store) or ``hub`` (an outage of the hub)."""

    owner_id: str
    """The process; empty for an outage, which affects all."""

    begun_s: float
    ended_s: float

    def affects(self, owner_ids: Collection[str], since_s: float, until_s: float) -> bool:
        """Return whether it affected one of them within that time."""
        is_affected = not self.owner_id or self.owner_id in owner_ids
        return is_affected and self.begun_s <= until_s and self.ended_s >= since_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """One handled event in the journal."""

    owner_id: str
    partition_id: str
    number: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The end of a process that was not killed."""

    owner_id: str
    code: int
    begun_s: float
    terminated_s: float | None
    """When it was sent SIGTERM; ``None`` if it was not."""

    ended_s: float
    output: str


def lost_events(handled: Sequence[Handled], published: Mapping[str, int]) -> Iterator[str]:
    """Yield events that were not handled."""
    seen = {(one.partition_id, one.number) for one in handled}
    for partition_id, count in published.items():
        missing = [n for n in range(count) if (partition_id, n) not in seen]
        if missing:
            yield f"lost: {len(missing)} of partition {partition_id}, first {missing[:5]}"


def out_of_order(handled: Sequence[Handled]) -> Iterator[str]:
    """Yield events that were handled for the first time before an earlier one."""
    newest: dict[str, int] = defaultdict(lambda: -1)
    for one in handled:
        if one.number > newest[one.partition_id] + 1:
            yield (
                f"order: {one.owner_id} handled {one.partition_id}/{one.number} when "
                f"{newest[one.partition_id]} was the newest"
            )
        newest[one.partition_id] = max(newest[one.partition_id], one.number)


def unexplained_repeats(
    handled: Sequence[Handled], faults: Sequence[Fault], *, stored_within_s: float, lasts_s: float
) -> Iterator[str]:
    """Yield events that were handled twice although no fault had affected their processes.

    An outage of the hub explains none: a process that reads on does so after what it handled.

    Args:
        handled: In the order of the journal.
        faults: All of them.
        stored_within_s: How soon the position of an event is stored at the latest, without faults.
        lasts_s: For how long a process is affected by a freeze or an outage that has ended.
    """
    before: dict[tuple[str, int], Handled] = {}
    for one in handled:
        first = before.get((one.partition_id, one.number))
        before[one.partition_id, one.number] = one
        if first is None:
            continue
        # Either a fault kept the first process from storing the position, ...
        until_s = min(one.at_s, first.at_s + stored_within_s)
        # ... or the second process was frozen with the event, and the first one had taken over.
        # A process notes the time before it appends to the journal, and may be frozen in between.
        begun_s, ended_s = sorted((first.at_s, one.at_s))
        if any(
            fault.affects({first.owner_id}, first.at_s - lasts_s, until_s)
            or (
                fault.kind == "freeze"
                and fault.affects({one.owner_id}, min(begun_s, one.at_s - WAKES_WITHIN_S), ended_s)
            )
            for fault in faults
            if fault.kind != "hub"
        ):
            continue
        yield (
            f"twice: {one.partition_id}/{one.number} by {first.owner_id}, and by {one.owner_id} "
            f"{one.at_s - first.at_s:.3f} s later, without a fault of either"
        )


def repeats_in_calm(handled: Sequence[Handled], calm_from: Mapping[str, int]) -> Iterator[str]:
    """Yield events published after the storm that were handled twice."""
    seen: set[tuple[str, int]] = set()
    for one in handled:
        place = (one.partition_id, one.number)
        if one.number >= calm_from[one.partition_id] and place in seen:
            yield f"twice in calm: {one.partition_id}/{one.number}, by {one.owner_id} again"
        seen.add(place)


def wrong_states(states: Mapping[str, bytes | None], published: Mapping[str, int]) -> Iterator[str]:
    """Yield stored states that are not count and sum of all events, each counted once."""
    for partition_id, count in published.items():
        found = json.loads(states.get(partition_id) or b"null")
        if found != [count, sum(range(count))]:
            yield f"state: {found} of partition {partition_id}, which has {count} events"


def wrong_exit_codes(exits: Sequence[Exit], faults: Sequence[Fault]) -> Iterator[str]:
    """Yield exits whose code is not that of ``docs/command.md``."""
    outages = [fault for fault in faults if fault.kind in ("outage", "hub")]
    for one in exits:
        owner_ids = {one.owner_id}
        was_cut_off = any(o.affects(owner_ids, one.begun_s, one.ended_s) for o in outages)
        was_faulted = one.terminated_s is not None and any(
            fault.affects(owner_ids, one.terminated_s, one.ended_s) for fault in faults
        )
        is_right = (
            (one.code == OK and one.terminated_s is not None and ABANDONED not in one.output)
            or (one.code == UNREACHABLE and was_cut_off)
            or (one.code == FAILED and was_faulted)
        )
        if one.code == BAD_INPUT or not is_right:
            when = "after SIGTERM" if one.terminated_s is not None else "by itself"
            last = one.output.strip().rpartition("\n")[2][:300]
            yield f"exit: {one.owner_id} ended {when} with {one.code}: {last}"


def error_lines(output_by_name: Mapping[str, str]) -> Iterator[str]:
    """Yield lines that report a dropped error or task."""
    for name, output in output_by_name.items():
        for number, line in enumerate(output.splitlines(), start=1):
            if ERROR_LINE.search(line):
                yield f"output: {name}:{number}: {line[:300]}"
