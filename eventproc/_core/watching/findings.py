"""What needs attention in a group, the most urgent first.

A finding says what is known, what follows from it, and what to do.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Final

from eventproc._core.watching.causes import Case, Finding, Kind, WatchRules
from eventproc._core.watching.group import WatchedGroup, listed
from eventproc._core.watching.memory import Memory, PartitionMemory
from eventproc.models import MemberStatus

LATE: Final = 0.6
"""A member that was silent for this part of the expiration is late: leases are renewed when they
are a third of it old."""


def findings_of(memory: Memory, group: WatchedGroup, rules: WatchRules) -> tuple[Finding, ...]:
    """Return the findings, the most urgent first."""
    found: list[Finding] = []
    if group.partitions and not group.live_ids:
        found.append(_not_running(memory, group))
    case = Case(memory, group, rules)
    causes: defaultdict[tuple[Kind, str], list[PartitionMemory]] = defaultdict(list)
    for each in memory.values():
        cause = case.cause_of(each)
        if cause is not None and (group.live_ids or cause[0] is Kind.DAMAGED):
            causes[cause].append(each)
    found += [case.finding(kind, key, stuck) for (kind, key), stuck in causes.items()]
    found += _late(group, rules)
    found += _placements(group)
    if group.live_ids:
        found += _lost(group, {member_id for finding in found for member_id in finding.member_ids})
    order = list(Kind)
    return tuple(sorted(found, key=lambda finding: (order.index(finding.kind), finding.since_s)))


def _not_running(memory: Memory, group: WatchedGroup) -> Finding:
    waiting = [p.lag for p in group.partitions if p.lag is not None]
    since_s = max(
        (each.unserved_since_s for each in memory.values() if each.unserved_since_s is not None),
        default=group.at_s,
    )
    is_done = bool(waiting) and not any(waiting)
    events = f", and {sum(waiting):,} events wait" if waiting else ""
    return Finding(
        kind=Kind.STOPPED if is_done else Kind.NOT_RUNNING,
        text="No member of the group is alive, and no event waits."
        if is_done
        else f"No member of the group is alive: nothing is handled{events}.",
        remedy="Start a processor, with this hub, this consumer group and this store.",
        since_s=since_s,
        partition_ids=tuple(p.partition_id for p in group.partitions),
    )


def is_late(silent_s: float | None, expiration_s: float) -> bool:
    """Whether a live member should have renewed by now."""
    return silent_s is not None and silent_s > LATE * expiration_s


def _late(group: WatchedGroup, rules: WatchRules) -> Iterable[Finding]:
    owned = Counter(p.owner_id for p in group.partitions)
    live = [member for member in group.members if member.is_live]
    remedy = "It was killed or suspended, cannot reach the store, or began again in another group."
    if len(live) > 1 and all(is_late(m.silent_s, rules.expiration_s) for m in live):
        remedy = (
            "All are late: the store takes no writes, or the group has another expiration than "
            f"the {rules.expiration_s:g} s assumed here (--expiration; expiration_s in "
            "processor_starting)."
        )
    for member in group.members:
        # A restarting member is away on purpose; it may stay away for longer than a renewal.
        is_expected = member.is_live and member.record.status is not MemberStatus.RESTARTING
        if not (is_expected and is_late(member.silent_s, rules.expiration_s)):
            continue
        silent_s = member.silent_s or 0
        left_s = max(0.0, rules.expiration_s - silent_s)
        count = owned[member.owner_id]
        yield Finding(
            kind=Kind.LATE,
            text=f"{member.owner_id} has not renewed for {silent_s:.0f} s. In {left_s:.0f} s "
            + (f"its {count} partitions may be claimed by others." if count else "it is lost."),
            remedy=remedy,
            since_s=group.at_s - silent_s,
            partition_ids=tuple(
                p.partition_id for p in group.partitions if p.owner_id == member.owner_id
            ),
            member_ids=(member.owner_id,),
        )


def _lost(group: WatchedGroup, told: Collection[str]) -> Iterable[Finding]:
    """Members that did not leave, but for those whose partitions wait: that says more."""
    lost = [m.owner_id for m in group.members if not m.is_live and m.owner_id not in told]
    if lost:
        do, they, their = ("do", "They were", "their logs")
        if len(lost) == 1:
            do, they, their = ("does", "It was", "its log")
        yield Finding(
            kind=Kind.LOST,
            text=f"{listed(lost)} did not leave and {do} not renew any more. Others take the "
            "partitions.",
            remedy=f"{they} killed or suspended, cannot reach the store, began again in another "
            "group, or stopped with static membership and did not come back: look at the end of "
            f"{their}. One that was killed refuses connections at its health port: start it again, "
            "unless systemd, Kubernetes or a replacement with another name has done so. One that "
            "is suspended does not answer: end it.",
            since_s=group.at_s,
            member_ids=tuple(lost),
        )


def _placements(group: WatchedGroup) -> Iterable[Finding]:
    names = sorted({m.record.placement for m in group.members if m.is_live and m.has_record})
    if len(names) > 1:
        yield Finding(
            kind=Kind.PLACEMENTS,
            text=f"The members name different placements: {listed(names)}. All follow the one "
            "that most of them name.",
            remedy="This is in order during a rolling deployment. Otherwise, configure one.",
            since_s=group.at_s,
        )


def stuck_partitions(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return the first finding of each partition whose events are not handled."""
    by_id: dict[str, Finding] = {}
    for finding in findings:
        if finding.is_stuck:
            for partition_id in finding.partition_ids:
                by_id.setdefault(partition_id, finding)
    return by_id


def needs_whole_checkpoint(known: PartitionMemory, at_s: float, rules: WatchRules) -> bool:
    """Whether to read more of a checkpoint than a listing has, because that may say why."""
    p = known.seen
    return (
        known.works_since_s is not None
        and p.error is None
        and at_s - max(known.moved_at_s, known.works_since_s) >= rules.stuck_after_s / 2
    )
