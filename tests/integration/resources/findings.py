"""What the log of a fence shows: violations, overlaps, and for how long each name was closed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.integration.resources.bounds import AWAKE_S, Bounds
from tests.integration.resources.diary import length_s
from tests.integration.resources.fence import Message
from tests.integration.resources.story import Process

AFTER_CRASH = "crash"
BESIDE_OTHERS = "crash, beside other events"
PLANNED = "planned"

UNSETTLED_S = 2.0
"""For how long after a join or a leave the members may still differ in what they see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A name that went from one holder to the next."""

    name: str
    cause: str
    at_s: float
    closed_s: float
    """From the last message of the one, or what struck it, to the first message of the other."""

    protocol_s: float
    """Of these: without the handlers' own time to close and open, and the store's answers."""


@dataclass(slots=True)
class Findings:
    """What happened in one story."""

    violations: list[str] = field(default_factory=list)
    refused: list[Message] = field(default_factory=list)
    """What would have been accepted without the check, beside a newer holder."""

    after_wake_s: list[float] = field(default_factory=list)
    """For each refused message: how long after the wake of its sender it came."""

    changes: list[Change] = field(default_factory=list)
    accepted_count: int = 0

    @property
    def overlap_count(self) -> int:
        """How often a former holder still sent."""
        return len({(m.name, m.epoch) for m in self.refused})

    def changes_by(self, cause: str) -> list[Change]:
        """Return the changes of one cause, the longest last."""
        return sorted((c for c in self.changes if c.cause == cause), key=lambda c: c.protocol_s)


def find(messages: Sequence[Message], processes: Sequence[Process], bounds: Bounds) -> Findings:
    """Judge a log."""
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
                found.changes.append(_change(last, first, process_by_pid, bounds))
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
        found.after_wake_s.append(after_s)
        if after_s > AWAKE_S:
            found.violations.append(f"overlap {after_s:.1f} s after the wake: {message}")


def _check_holds(
    last: Message, first: Message, process_by_pid: Mapping[int, Process], found: Findings
) -> None:
    """Check that a hold which ended by itself had ended before the next one began."""
    former, next_ = process_by_pid[last.pid], process_by_pid[first.pid]
    ended = former.diary.ended_s.get((last.name, last.epoch))
    began_s = next_.diary.began_s.get((first.name, first.epoch))
    if ended is None or began_s is None or ended[1] <= began_s:
        return
    if not any(last.at_s - AWAKE_S <= until and at <= ended[1] for at, until in former.frozen):
        found.violations.append(
            f"{last.name}: hold began {ended[1] - began_s:.3f} s before the one of {last} had ended"
        )


def _change(
    last: Message, first: Message, process_by_pid: Mapping[int, Process], bounds: Bounds
) -> Change:
    """Return why a name changed its holder, and for how long it was closed.

    If several processes were killed or frozen, what counts is the last of them: it may have been
    the one that was about to take the name.
    """
    former, next_ = process_by_pid[last.pid], process_by_pid[first.pid]
    near = [
        (at_s, is_fault, process)
        for process in process_by_pid.values()
        for at_s, is_fault in _events(process)
        if last.at_s - (bounds.crowded_s if is_fault else UNSETTLED_S) <= at_s <= first.at_s
    ]
    struck = [
        at_s for at_s, is_fault, p in near if p is former and is_fault and at_s > last.at_s - 0.1
    ]
    others = [at_s for at_s, is_fault, p in near if p is not former and is_fault]
    began_s = next_.diary.began_s.get((first.name, first.epoch), first.at_s)
    if struck or others:
        cause = AFTER_CRASH if struck and len(near) == 1 else BESIDE_OTHERS
        since_s = max([last.at_s, *struck, *others])
        # Before the record has expired nobody waits for the store.
        waited_s = length_s(next_.diary.requests(since_s + bounds.expired_s, began_s))
        return _measured(first, cause, since_s, began_s - since_s - waited_s)
    _, ended_s = former.diary.ended_s.get((last.name, last.epoch), (last.at_s, last.at_s))
    requests = [d.requests(ended_s, began_s) for d in (former.diary, next_.diary)]
    waited_s = length_s([span for spans in requests for span in spans])
    return _measured(first, PLANNED, last.at_s, began_s - ended_s - waited_s)


def _measured(first: Message, cause: str, since_s: float, protocol_s: float) -> Change:
    return Change(
        name=first.name,
        cause=cause,
        at_s=first.at_s,
        closed_s=first.at_s - since_s,
        protocol_s=protocol_s,
    )


def _events(process: Process) -> list[tuple[float, bool]]:
    """Return when a process changed the group, and whether that was a fault."""
    events = [(process.started_s, False)]
    if process.terminated_s is not None:
        events.append((process.terminated_s, False))
    if process.killed_s is not None:
        events.append((process.killed_s, True))
    for at_s, woke_s in process.frozen:
        events += [(at_s, True), (woke_s, True)]
    return events
