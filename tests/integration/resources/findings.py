"""What the log of a fence shows: violations, overlaps, and for how long each name was closed."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.integration.resources.bounds import AWAKE_S, OUTAGE_S, Bounds
from tests.integration.resources.fence import Message
from tests.integration.resources.journal import length_s
from tests.integration.resources.storm import Process

AFTER_CRASH = "crash"
CRASH_BESIDE_OTHERS = "crash, beside other events"
PLANNED = "planned"
PLANNED_BESIDE_OTHERS = "planned, beside others"
PLANNED_BESIDE_FAULT = "planned, beside a fault"
AFTER_OUTAGE = "either, and slow store"

UNSETTLED_S = 1.0
"""For how long an event before the group was settled still counts as beside the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A name that went from one holder to the next."""

    name: str
    cause: str
    closed_s: float
    """From the end of the one hold, or what struck it, to the begin of the other, without the time
    in which they waited for the store, or for CPU time on a busy machine."""


@dataclass(slots=True)
class Findings:
    """What happened in one storm."""

    violations: list[str] = field(default_factory=list)
    refused: list[Message] = field(default_factory=list)
    """What would have been accepted without the check, beside a newer holder."""

    changes: list[Change] = field(default_factory=list)
    accepted_count: int = 0

    def late(self, bounds: Bounds) -> list[Change]:
        """Return the names that were closed for too long."""
        bound_by_cause = {
            AFTER_CRASH: bounds.crash_s,
            CRASH_BESIDE_OTHERS: bounds.crowded_s,
            PLANNED: bounds.planned_s,
            PLANNED_BESIDE_OTHERS: bounds.passed_on_s,
            PLANNED_BESIDE_FAULT: bounds.crowded_s,
            AFTER_OUTAGE: bounds.outage_s,
        }
        return [c for c in self.changes if c.closed_s > bound_by_cause[c.cause]]


def find(
    messages: Sequence[Message],
    processes: Sequence[Process],
    bounds: Bounds,
    settled_s: Sequence[float] = (),
) -> Findings:
    """Judge a log; *settled_s* are the times at which the group had done all that it had to do."""
    found = Findings()
    process_by_pid = {p.popen.pid: p for p in processes}
    log_by_name: dict[str, list[Message]] = {}
    for message in messages:
        log_by_name.setdefault(message.name, []).append(message)
    for log in log_by_name.values():
        _check_order(log, process_by_pid, found)
        accepted = [m for m in log if m.is_accepted]
        for last, first in pairwise(accepted):
            if last.epoch != first.epoch:
                known_s = settled_s[: bisect_right(settled_s, last.at_s)]
                near_s = known_s[-1] - UNSETTLED_S if known_s else 0.0
                found.changes.append(_change(last, first, process_by_pid, bounds, near_s))
                _check_holds(last, first, process_by_pid, found)
    return found


def _check_order(
    log: list[Message], process_by_pid: Mapping[int, Process], found: Findings
) -> None:
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
        if not woke:
            found.violations.append(f"overlap without a freeze: {message}")
            continue
        after_s = message.at_s - woke[-1]
        if after_s > AWAKE_S:
            found.violations.append(f"overlap {after_s:.1f} s after the wake: {message}")


def _check_holds(
    last: Message, first: Message, process_by_pid: Mapping[int, Process], found: Findings
) -> None:
    """Check that a hold which ended by itself had ended before the next one began."""
    former, next_ = process_by_pid[last.pid], process_by_pid[first.pid]
    ended = former.journal.ended_s.get((last.name, last.epoch))
    began_s = next_.journal.began_s.get((first.name, first.epoch))
    if ended is None or began_s is None or ended[1] <= began_s:
        return
    if not any(last.at_s - AWAKE_S <= until and at <= ended[1] for at, until in former.frozen):
        found.violations.append(
            f"{last.name}: hold began {ended[1] - began_s:.3f} s before the one of {last} had ended"
        )


def _change(
    last: Message,
    first: Message,
    process_by_pid: Mapping[int, Process],
    bounds: Bounds,
    near_s: float,
) -> Change:
    """Return why a name changed its holder, and for how long it was closed.

    Events since *near_s* count. If several processes were killed or frozen, the last of them does:
    it may have been the one that was about to take the name.
    """
    former, next_ = process_by_pid[last.pid], process_by_pid[first.pid]
    near_count, own_s, others_s = 0, list[float](), list[float]()
    for process in process_by_pid.values():
        joins_s, faults_s = _events(process, last.at_s)
        near_count += sum(near_s < at_s <= first.at_s for at_s in joins_s + faults_s)
        faults_s = [at_s for at_s in faults_s if near_s < at_s <= first.at_s]
        if process is not former:
            others_s += faults_s
        elif faults_s and faults_s[0] > last.at_s - 0.1:
            own_s = faults_s
    began_s = next_.journal.began_s.get((first.name, first.epoch), first.at_s)
    if own_s or others_s:
        cause = CRASH_BESIDE_OTHERS if own_s else PLANNED_BESIDE_FAULT
        if own_s and near_count == 1:
            cause = AFTER_CRASH
        since_s = max([last.at_s, *own_s, *others_s])
        if next_.journal.had_outage(OUTAGE_S, since_s, began_s):
            cause = AFTER_OUTAGE
        # Before the record has expired, no wait delays anything.
        waited_s = length_s(next_.journal.waits_within(since_s + bounds.expired_s, began_s))
        return Change(name=first.name, cause=cause, closed_s=began_s - since_s - waited_s)
    _, ended_s = former.journal.ended_s.get((last.name, last.epoch), (last.at_s, last.at_s))
    waits = [d.waits_within(ended_s, began_s) for d in (former.journal, next_.journal)]
    waited_s = length_s([span for spans in waits for span in spans])
    cause = PLANNED_BESIDE_OTHERS if near_count > 1 else PLANNED
    return Change(name=first.name, cause=cause, closed_s=began_s - ended_s - waited_s)


def _events(process: Process, now_s: float) -> tuple[list[float], list[float]]:
    """Return when a process joined, left or woke up, and when it was killed or frozen.

    One that has woken up before *now_s* was not frozen then: it has joined again.
    """
    joins_s = [process.started_s, *(woke_s for _, woke_s in process.frozen)]
    if process.terminated_s is not None:
        joins_s.append(process.terminated_s)
    faults_s = [at_s for at_s, woke_s in process.frozen if woke_s >= now_s]
    if process.killed_s is not None:
        faults_s.append(process.killed_s)
    return joins_s, faults_s
