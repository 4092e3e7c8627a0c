"""What the journals of pods say: lost, out of order, handled twice, two handlers at once."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FOREVER: Final = 2**63


@dataclass(frozen=True, slots=True, order=True)
class Handled:
    """One message that a pod handled; times in nanoseconds of CLOCK_MONOTONIC."""

    at: int
    pod: str
    partition_id: str
    key: str
    number: int
    again: int
    """How often the broker had sent it before."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One call of a handler."""

    began: int
    ended: int
    partition_id: str
    pod: str


@dataclass(slots=True)
class Findings:
    """The accounts of a run."""

    lost: list[tuple[str, int]] = field(default_factory=list)
    repeated: list[Handled] = field(default_factory=list)
    """Handled before, by any pod."""

    out_of_order: list[Handled] = field(default_factory=list)
    """An earlier message of the key was to be handled first."""

    unmarked: list[Handled] = field(default_factory=list)
    """Repeated although the broker sent it for the first time."""

    overlaps: list[tuple[Call, Call]] = field(default_factory=list)
    """Calls of two pods for one queue at one time."""

    late: list[Handled] = field(default_factory=list)
    """By a pod that was frozen meanwhile: its calls count until it was frozen."""

    by_pod: Counter[str] = field(default_factory=Counter)

    @property
    def violations(self) -> list[object]:
        """What may not happen, whatever is killed or frozen."""
        return [*self.lost, *self.out_of_order, *self.unmarked, *self.overlaps]


def find(
    journals: Mapping[str, Path],
    published: Mapping[str, int],
    *,
    published_twice: Iterable[tuple[str, int]] = (),
    ended: Mapping[str, int],
    frozen: Mapping[str, tuple[int, int]],
) -> Findings:
    """Judge the journals.

    Args:
        journals: Of each pod's process.
        published: How many messages each key has.
        published_twice: Messages that the publisher repeated, because it got no confirmation.
        ended: When a killed process had ended.
        frozen: From when to when a process was frozen.
    """
    found = Findings()
    handled: list[Handled] = []
    calls: list[Call] = []
    for pod, path in journals.items():
        until = ended.get(pod, FOREVER)
        frozen_at, awake_at = frozen.get(pod, (FOREVER, FOREVER))
        begun: dict[str, list[int]] = defaultdict(list)
        for line in path.read_text().splitlines():
            what, partition_id, at, *rest = line.split()
            now = int(at)
            if what == "enter":
                begun[partition_id].append(now)
            elif what == "leave":
                began = begun[partition_id].pop()
                end = frozen_at if began <= frozen_at < now else now
                calls.append(Call(began, end, partition_id, pod))
            elif what == "handled":
                one = Handled(now, pod, partition_id, rest[0], int(rest[1]), int(rest[2]))
                is_late = any(b <= frozen_at for b in begun[partition_id]) and now >= awake_at
                (found.late if is_late else handled).append(one)
        for partition_id, open_ones in begun.items():
            calls += [Call(began, until, partition_id, pod) for began in open_ones]
    _judge_messages(found, sorted(handled), published, set(published_twice))
    _judge_calls(found, sorted(calls))
    return found


def _judge_messages(
    found: Findings,
    handled: list[Handled],
    published: Mapping[str, int],
    published_twice: set[tuple[str, int]],
) -> None:
    newest: dict[str, int] = defaultdict(lambda: -1)
    seen: dict[str, set[int]] = defaultdict(set)
    for one in handled:
        if one.number > newest[one.key] + 1:
            found.out_of_order.append(one)
        if one.number in seen[one.key]:
            found.repeated.append(one)
            if not one.again and (one.key, one.number) not in published_twice:
                found.unmarked.append(one)
        newest[one.key] = one.number
        seen[one.key].add(one.number)
        found.by_pod[one.pod] += 1
    for key, count in published.items():
        found.lost += [(key, number) for number in range(count) if number not in seen[key]]


def _judge_calls(found: Findings, calls: list[Call]) -> None:
    """Find calls of two pods that overlap; those of one pod may, in key lanes."""
    newest: dict[str, Call] = {}
    for call in calls:
        before = newest.get(call.partition_id)
        if before is not None and before.pod != call.pod and before.ended > call.began:
            found.overlaps.append((before, call))
        if before is None or call.ended > before.ended:
            newest[call.partition_id] = call
