"""What the log of a fence shows: violations, overlaps, and for how long each name was closed."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.integration.resources.fence import EXPIRATION, Message
from tests.integration.resources.story import Process

QUIET_S: Final = 2 * EXPIRATION.total_seconds()
"""A change is planned if nothing was killed or frozen for so long before, or meanwhile."""


@dataclass(slots=True)
class Findings:
    """What happened in one story."""

    violations: list[str] = field(default_factory=list)
    refused: list[Message] = field(default_factory=list)
    """What would have been accepted without the check, beside a newer holder."""

    after_wake_s: list[float] = field(default_factory=list)
    """For each refused message: how long after the wake of its sender it came."""

    closed_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """For how long a name was closed, by what happened to its holder."""

    accepted_count: int = 0


def find(messages: Sequence[Message], processes: Sequence[Process]) -> Findings:
    """Judge a log."""
    found = Findings()
    process_by_pid = {p.popen.pid: p for p in processes}
    for name in sorted({m.name for m in messages}):
        log = [m for m in messages if m.name == name]
        _check_order(log, process_by_pid, found)
        _measure(log, process_by_pid, found)
    return found


def _check_order(log: list[Message], process_by_pid: dict[int, Process], found: Findings) -> None:
    """Check each message of a name against those before it, whatever the server said of them."""
    highest, first_s = 0, dict[int, float]()
    holder_by_epoch: dict[int, tuple[str, int]] = {}
    for message in log:
        sender = message.owner_id, message.pid
        if holder_by_epoch.setdefault(message.epoch, sender) != sender:
            found.violations.append(f"two holders of one epoch: {message}")
        first_s.setdefault(message.epoch, message.at_s)
        if message.is_accepted:
            found.accepted_count += 1
            if message.epoch < highest:
                found.violations.append(f"accepted below {highest}: {message}")
        elif message.epoch >= highest:
            found.violations.append(f"refused, but the highest was {highest}: {message}")
        highest = max(highest, message.epoch)
        if message.epoch == highest:
            continue
        found.refused.append(message)
        freezes = process_by_pid[message.pid].frozen
        woke = [until for at, until in freezes if first_s[message.epoch] <= at <= message.at_s]
        if woke:
            found.after_wake_s.append(message.at_s - woke[-1])
        else:
            found.violations.append(f"overlap without a freeze: {message}")


def _measure(log: list[Message], process_by_pid: dict[int, Process], found: Findings) -> None:
    """Measure the time from the last message of each holder to the first one of the next."""
    accepted = [m for m in log if m.is_accepted]
    for last, first in pairwise(accepted):
        if last.epoch != first.epoch:
            cause, since_s = _cause(last, first, process_by_pid)
            found.closed_s[cause].append(first.at_s - since_s)


def _cause(last: Message, first: Message, process_by_pid: dict[int, Process]) -> tuple[str, float]:
    """Return why a name changed its holder, and since when it was closed.

    If several processes were killed or frozen, what counts is the last of them: it may have been
    the one that was about to take the name, or that let the plan change again.
    """
    faults = [
        (at_s, kind, process)
        for process in process_by_pid.values()
        for kind, at_s in _faults(process)
        if last.at_s - QUIET_S <= at_s <= first.at_s
    ]
    own = [(at_s, kind) for at_s, kind, p in faults if p.popen.pid == last.pid]
    others = [at_s for at_s, _, p in faults if p.popen.pid != last.pid]
    struck = [(at_s, kind) for at_s, kind in own if at_s >= last.at_s - 0.1]
    if not struck:
        return ("planned, beside a fault" if faults else "planned"), last.at_s
    at_s, kind = struck[-1]
    return (f"{kind}, and other faults", max(at_s, *others)) if others else (kind, at_s)


def _faults(process: Process) -> list[tuple[str, float]]:
    """Return the crash and the freezes of a process."""
    killed = [] if process.killed_s is None else [("SIGKILL", process.killed_s)]
    return killed + [("SIGSTOP", at_s) for at_s, _ in process.frozen]


def row(cause: str, times_s: Sequence[float]) -> str:
    """Return a line of the table: count, median, p99 and the longest, in seconds."""
    ordered = sorted(times_s)
    p99 = ordered[math.ceil(0.99 * len(ordered)) - 1]
    return (
        f"| {cause} | {len(ordered)} | {ordered[len(ordered) // 2]:.2f} | {p99:.2f} "
        f"| {ordered[-1]:.2f} |"
    )
