"""Judges what was found in all groups, and prints it as two tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.integration.resources.bounds import Bounds
from tests.integration.resources.fence import EXPIRATION, INTERVAL, REBALANCE
from tests.integration.resources.findings import (
    AFTER_CRASH,
    AFTER_OUTAGE,
    CRASH_BESIDE_OTHERS,
    PLANNED,
    PLANNED_BESIDE_FAULT,
    PLANNED_BESIDE_OTHERS,
    Change,
    Findings,
)
from tests.integration.resources.storm import Storm

P99_COUNT_MIN = 100
"""Of fewer changes the 99th percentile is the longest one."""


@dataclass(frozen=True, slots=True)
class Line:
    """For how long names were closed, by one cause, and what that is held against."""

    cause: str
    measure: str
    """What is held against the bound: ``max`` or ``p99``."""

    bound_s: float
    changes: Sequence[Change]

    @property
    def protocol_s(self) -> float:
        """What is held against the bound."""
        times_s = [c.protocol_s for c in self.changes]
        return p99(times_s) if self.measure == "p99" else max(times_s)

    def row(self, group: str) -> str:
        """Return a row of the table."""
        closed_s = sorted(c.closed_s for c in self.changes)
        return (
            f"{group:18} {self.cause:26} {len(closed_s):7} {closed_s[len(closed_s) // 2]:7.2f} "
            f"{p99(closed_s):6.2f} {closed_s[-1]:6.2f}   {self.measure} {self.protocol_s:5.2f} "
            f"{self.bound_s:6.2f}"
        )

    def violations(self) -> list[str]:
        """Return that names were closed for too long, if they were."""
        if self.protocol_s <= self.bound_s:
            return []
        worst = max(self.changes, key=lambda c: c.protocol_s)
        return [
            (
                f"{self.cause}: closed for {self.protocol_s:.3f} s ({self.measure}), the bound is "
                f"{self.bound_s:.3f} s; the longest: {worst}"
            )
        ]


def p99(times_s: Iterable[float]) -> float:
    """Return the 99th percentile."""
    ordered = sorted(times_s)
    return ordered[math.ceil(0.99 * len(ordered)) - 1]


def lines(found: Findings, bounds: Bounds) -> list[Line]:
    """Return what happened of each kind of change."""
    kinds = [
        (AFTER_CRASH, "max", bounds.crash_s),
        (CRASH_BESIDE_OTHERS, "max", bounds.crowded_s),
        (PLANNED, "p99", bounds.planned_s),
        (PLANNED_BESIDE_OTHERS, "max", bounds.passed_on_s),
        (PLANNED_BESIDE_FAULT, "max", bounds.crowded_s),
        (AFTER_OUTAGE, "max", bounds.outage_s),
    ]
    found_lines = [
        Line(cause, measure, bound_s, changes)
        for cause, measure, bound_s in kinds
        if (changes := found.changes_by(cause))
    ]
    planned = found.changes_by(PLANNED, PLANNED_BESIDE_OTHERS)
    if len(planned) >= P99_COUNT_MIN and found.changes_by(PLANNED_BESIDE_OTHERS):
        found_lines.append(Line("planned, both", "p99", bounds.planned_s, planned))
    return found_lines


def violations(storm: Storm, found: Findings, bounds: Bounds) -> list[str]:
    """Return all that must not happen in a group."""
    late = [violation for line in lines(found, bounds) for violation in line.violations()]
    idle = []
    if storm.events["freeze"] and not found.refused:
        idle = ["no message was refused, although holders were frozen: nothing is shown"]
    return [*found.violations, *late, *idle]


def tables(groups: Mapping[str, tuple[Storm, Findings, Bounds]]) -> str:
    """Return what was found, to be read."""
    shown = [
        (
            f"expiration {EXPIRATION.total_seconds()} s, load-balancing interval "
            f"{INTERVAL.total_seconds()} s, rebalance interval {REBALANCE.total_seconds()} s"
        ),
        "",
        (
            f"{'group':18} {'events':>6} {'accepted':>9} {'refused':>8} {'overlaps':>8} "
            f"{'after a wake':>13} {'violations':>10}"
        ),
    ]
    for group, (storm, found, bounds) in groups.items():
        wake_s = max(found.after_wake_s, default=0.0)
        count = len(violations(storm, found, bounds))
        shown.append(
            f"{group:18} {storm.events.total():6} {found.accepted_count:9} "
            f"{len(found.refused):8} {found.overlap_count:8} {wake_s:11.3f} s {count:10}"
        )
    shown += [
        "",
        "Overlaps are names whose former holder still sent, all of them after it was frozen.",
        "Closed times in seconds; held against the bound is the protocol's part: less the",
        "handlers' own time to close and open, and less the time in which these processes waited",
        "for the store, or got no CPU time.",
        "",
        (
            f"{'group':18} {'closed by':26} {'changes':>7} {'median':>7} {'p99':>6} {'max':>6}   "
            f"{'protocol':>9} {'bound':>6}"
        ),
    ]
    for group, (_, found, bounds) in groups.items():
        shown += [line.row(group) for line in lines(found, bounds)]
    shown.append("")
    for group, (storm, _, _) in groups.items():
        events = ", ".join(f"{kind} {n}" for kind, n in sorted(storm.events.items()))
        shown.append(f"{group:18} {events}; sleeps here were {storm.slack_s:.2f} s late at most")
    return "\n".join(shown)
