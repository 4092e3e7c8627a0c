"""What needs attention: the kinds of findings, and what is wrong with one partition, in words.

Rule 1: a partition is stuck if it has no live owner, or if events wait and its checkpoint does not
move, for longer than an operator allows. Without the hub's answer nothing is known of waiting
events, so only the first can be found.
Rule 2: each partition has one finding at most, the one that explains the others.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eventproc._core.delivery.failure import deliveries_of
from eventproc._core.watching.group import WatchedGroup, listed, span_text
from eventproc._core.watching.memory import CHANGES_SPAN_S, RATE_SPAN_S, Memory, PartitionMemory
from eventproc.models import IN_PART

CLAIMED_WITHIN: Final = 1.25
"""Expirations after which a lost partition should have been claimed: a poll is a sixth of one."""

CHANGES_THAT_CONFLICT: Final = 4
"""This many changes of the owner within ``CHANGES_SPAN_S``, among at most ``RIVALS_MAX`` members,
are more than a rebalance."""

RIVALS_MAX: Final = 2

OWNERS_THAT_FAILED: Final = 3
"""After this many owners without progress, a new owner gets no further time."""

STUCK_AFTER_S: Final = 60.0
"""By default, a partition is stuck if its events wait for so long without progress."""

HOT_LAG_MIN: Final = 100
"""A backlog of fewer events is no matter, wherever it is."""

HOT_PARTITIONS_MIN: Final = 3
"""Of two partitions, one always has half of the events."""

SURPLUS: Final = 1.05
"""Arrivals above the handled events by this factor are more than fluctuation."""


class Kind(StrEnum):
    """The kinds of findings, the most urgent first."""

    NOT_RUNNING = "not running"
    DAMAGED = "damaged checkpoint"
    UNOWNED = "no owner"
    NOT_MOVING = "no progress"
    CONFLICT = "conflict"
    PAUSED = "paused"
    BEHIND = "falls behind"
    HOT = "hot partition"
    UNSURE = "perhaps stuck"
    LATE = "late member"
    LOST = "lost member"
    STOPPED = "stopped"
    PLACEMENTS = "placements differ"


STUCK: Final = frozenset({Kind.NOT_RUNNING, Kind.DAMAGED, Kind.UNOWNED, Kind.NOT_MOVING})
"""Findings that mean that events of a partition are not handled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that needs attention."""

    kind: Kind
    text: str
    remedy: str
    since_s: float
    partition_ids: tuple[str, ...] = ()
    member_ids: tuple[str, ...] = ()

    @property
    def is_stuck(self) -> bool:
        """Whether events are not handled."""
        return self.kind in STUCK


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRules:
    """The times after which something needs attention."""

    expiration_s: float
    stuck_after_s: float


@dataclass(frozen=True, slots=True)
class Case:
    """One reading, with what is remembered."""

    memory: Memory
    group: WatchedGroup
    rules: WatchRules

    def cause_of(self, known: PartitionMemory) -> tuple[Kind, str] | None:
        """Return what is wrong with a partition; partitions with the same key share a finding."""
        p = known.seen
        if p.error is not None:
            return Kind.DAMAGED, p.partition_id
        if known.unserved_since_s is not None:
            unserved_s = self.group.at_s - known.unserved_since_s
            is_long = unserved_s > CLAIMED_WITHIN * self.rules.expiration_s
            return (Kind.UNOWNED, p.owner_id or "") if is_long else None
        if p.pause is not None:
            return Kind.PAUSED, f"{p.pause.since.isoformat()} {p.pause.reason}"
        if self.is_not_moving(known):
            has_own_cause = p.is_moved_by_operator or p.isolation >= IN_PART or p.done_above_count
            is_alone = has_own_cause or known.owners_since_move >= OWNERS_THAT_FAILED
            return Kind.NOT_MOVING, p.partition_id if is_alone else f"{p.owner_id}/"
        owners = {owner_id for _, owner_id in known.changes if owner_id is not None}
        if len(known.changes) >= CHANGES_THAT_CONFLICT and len(owners) <= RIVALS_MAX:
            return Kind.CONFLICT, ""
        kind = self._of_load(known)
        return None if kind is None else (kind, "")

    def _of_load(self, known: PartitionMemory) -> Kind | None:
        if self._falls_behind(known):
            return Kind.BEHIND
        if self._is_perhaps_stuck(known):
            return Kind.UNSURE
        return Kind.HOT if self._is_hot(known) else None

    def is_not_moving(self, known: PartitionMemory) -> bool:
        """Whether events have waited for too long. A new owner gets the whole time again."""
        if known.works_since_s is None or known.unserved_since_s is not None:
            return False
        since_s = max(known.moved_at_s, known.works_since_s)
        if known.owners_since_move < OWNERS_THAT_FAILED and known.owners_since_move:
            since_s = max(since_s, known.owner_since_s)
        return self.group.at_s - since_s >= self.rules.stuck_after_s

    def _falls_behind(self, known: PartitionMemory) -> bool:
        arrival, drain, points = known.arrival_per_s, known.drain_per_s, known.points
        if arrival is None or not known.seen.has_work:
            return False
        is_observed = points[-1].at_s - points[0].at_s >= RATE_SPAN_S / 2
        # What arrives within some seconds may wait for the next checkpoint.
        is_backlog = (known.seen.lag or 0) > arrival * RATE_SPAN_S
        is_surplus = is_backlog and arrival > SURPLUS * (drain or 0)
        return is_observed and self._moves(known) and is_surplus

    def _moves(self, known: PartitionMemory) -> bool:
        """Whether the checkpoint moved: if it rests, the handler fails, hangs, or has stopped."""
        return self.group.at_s - known.moved_at_s < RATE_SPAN_S / 2

    def _is_perhaps_stuck(self, known: PartitionMemory) -> bool:
        """Whether an old checkpoint and several waiting events were found in the first reading.

        The events may have come just now: nothing but the time tells. Of one event, the age is
        known.
        """
        is_old = self.group.at_s - known.moved_at_s >= self.rules.stuck_after_s
        is_new = self.group.at_s - known.owner_since_s < self.rules.stuck_after_s
        is_served = known.unserved_since_s is None and not known.owners_since_move
        has_several = known.waits_from_first and (known.seen.lag or 0) > 1
        return is_old and is_new and is_served and has_several

    def _is_hot(self, known: PartitionMemory) -> bool:
        """Whether most of the events that wait are in this partition, and do not get fewer.

        Where the checkpoint rests, it is the handler that fails or hangs.
        """
        if (known.drain_per_s or 0) > (known.arrival_per_s or 0) or not self._moves(known):
            return False
        lag, lags = known.seen.lag or 0, [each.seen.lag or 0 for each in self.memory.values()]
        return len(lags) >= HOT_PARTITIONS_MIN and lag >= HOT_LAG_MIN and 2 * lag > sum(lags)

    def finding(self, kind: Kind, key: str, stuck: Sequence[PartitionMemory]) -> Finding:
        """Return the finding on partitions of one cause."""
        text, remedy, since_s = _EXPLAIN[kind](self, key, stuck)
        return Finding(
            kind=kind,
            text=text,
            remedy=remedy,
            since_s=since_s,
            partition_ids=tuple(each.seen.partition_id for each in stuck),
            member_ids=tuple(sorted({s for each in stuck if (s := each.seen.owner_id)})),
        )

    def limited_by_member(self, behind: Sequence[PartitionMemory]) -> frozenset[str]:
        """Return those of the partitions that a further member would relieve.

        Their owner has others of them, and none that keeps up: it is the owner that is too slow.
        Otherwise it is the partition, which one member serves at a time.
        """
        ids = {each.seen.partition_id for each in behind}
        served: defaultdict[str | None, list[str]] = defaultdict(list)
        for each in self.memory.values():
            if each.arrival_per_s:
                served[each.seen.server_id].append(each.seen.partition_id)
        return frozenset(
            partition_id
            for own in served.values()
            if len(own) > 1 and ids.issuperset(own)
            for partition_id in own
        )

    def moving_count(self, owner_id: str | None) -> int:
        """Count the partitions of an owner in which events are handled."""
        return sum(
            each.seen.owner_id == owner_id and each.is_moving for each in self.memory.values()
        )


_Explained = tuple[str, str, float]
"""Text, remedy, and since when."""


def _subject(stuck: Sequence[PartitionMemory], noun: str = "Partition") -> str:
    names = [each.seen.name for each in stuck]
    return f"{noun} {names[0]}" if len(names) == 1 else f"{noun}s {listed(names)}"


def _damaged(_: Case, __: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    p = stuck[0].seen
    return (
        f"The checkpoint of partition {p.name} cannot be read: {p.error}",
        (
            "No processor serves the partition until the checkpoint is replaced, with a reset "
            "or with an export that was made before."
        ),
        stuck[0].moved_at_s,
    )


def _unowned(case: Case, owner_id: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    since_s = min(each.unserved_since_s or 0 for each in stuck)
    lasted = span_text(case.group.at_s - since_s)
    active = [m for m in case.group.members if m.is_live and not m.record.is_leaving]
    why = (
        f"its owner {owner_id} does not renew its leases any more"
        if owner_id
        else "it was released or never claimed"
    )
    has = "has" if len(stuck) == 1 else "have"
    return (
        (
            f"{_subject(stuck)} {has} had no live owner for {lasted}: {why}, and none of the "
            f"{len(active)} live members has claimed it."
        ),
        (
            "Members that are at their capacity, that wait on standby, or that cannot write to "
            "the store claim nothing: look at their logs."
        ),
        since_s,
    )


def _not_moving(case: Case, _: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    since_s = min(max(each.moved_at_s, each.works_since_s or 0) for each in stuck)
    first = stuck[0].seen
    waiting = sum(each.seen.lag or 0 for each in stuck)
    has = "has" if len(stuck) == 1 else "have"
    known = (
        f"{_subject(stuck)} {has} made no progress for {span_text(case.group.at_s - since_s)}, "
        f"and {waiting:,} events wait. {first.owner_id} renews the lease"
    )
    why, remedy = _why_not_moving(case, stuck)
    return f"{known}{why}", remedy, since_s


_BY_COUNT: Final = (
    "A program that stores a position only every so many events, as many on an Azure SDK do, looks "
    "the same while no events come."
)


def _why_not_moving(case: Case, stuck: Sequence[PartitionMemory]) -> tuple[str, str]:
    known, p = stuck[0], stuck[0].seen
    next_event = "the first event" if p.position is None else f"event {p.position + 1}"
    moving = case.moving_count(p.owner_id)
    if p.is_moved_by_operator:
        return (
            ", but has not begun at the position to which an operator moved the checkpoint.",
            f"Restart {p.owner_id}: a processor of this library begins there within seconds.",
        )
    if known.owners_since_move >= OWNERS_THAT_FAILED or p.isolation >= IN_PART:
        return (
            f". Processes end while they handle {next_event} or one soon after it: "
            + (
                f"at least {deliveries_of(p.isolation)} had these events when they ended."
                if p.isolation >= IN_PART
                else f"{known.owners_since_move} owners in a row did not get past it."
            ),
            (
                f"Look at {next_event} and at how its process ended. With deliveries_max, events "
                "that kill their process are found and given up."
            ),
        )
    if p.done_above_count:
        return (
            (
                f", and {p.done_above_count:,} later events are handled: {next_event} alone "
                "holds the checkpoint back. Its handler fails again and again, or does not "
                "return."
            ),
            (
                f"Look for handler_failed in the log of {p.owner_id}. With attempts_max, an "
                "event that fails is given up, to a dead-letter sink if there is one."
            ),
        )
    if moving:
        return (
            (
                f" and makes progress in {moving} other partition{'s' * (moving > 1)}, so the "
                f"cause is here: the handler fails at {next_event} again and again, does not "
                "return, or waits for something."
            ),
            (
                f"Look for handler_failed and stall_detected in the log of {p.owner_id}, with "
                "this partition's id. A handler that gave up an event with the action STOP "
                f"looks the same. {_BY_COUNT}"
            ),
        )
    if any(each.is_moving for each in case.memory.values()):
        return (
            (
                ", but none of its partitions moves, while other members make progress: its "
                "process hangs, or what its handlers call does not answer."
            ),
            f"Look at the process of {p.owner_id} and its log; restart it if it hangs. {_BY_COUNT}",
        )
    return (
        (
            ", but no partition of the group moves: what all handlers need may be away, or no "
            "checkpoint can be written."
        ),
        (
            "Look for handler_failed, event_stopped_partition and checkpoint_failed in the logs, "
            f"and at what the handlers call. {_BY_COUNT}"
        ),
    )


def _conflict(_: Case, __: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    since_s = min(each.changes[0][0] for each in stuck)
    owners = sorted({each.seen.owner_id or "" for each in stuck} - {""})
    count = min(len(each.changes) for each in stuck)
    return (
        (
            f"{_subject(stuck)} changed the owner {count} times or more within "
            f"{span_text(CHANGES_SPAN_S)}; now with {listed(owners) or 'no owner'}. "
            "Members take partitions from each other, or end and start again and again."
        ),
        (
            "Check that all members have the same expiration, and only one process each owner "
            "id; look for processes that restart."
        ),
        since_s,
    )


def _paused(_: Case, __: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    pause = stuck[0].seen.pause
    assert pause is not None, "it is paused"
    waiting = sum(each.seen.lag or 0 for each in stuck)
    waits = f" {waiting:,} events wait." if waiting else ""
    verb = "is" if len(stuck) == 1 else "are"
    return (
        (
            f"{_subject(stuck)} {verb} paused by an operator since "
            f"{pause.since:%Y-%m-%d %H:%M:%S} UTC: {pause.reason}.{waits}"
        ),
        "Nothing is delivered until `eventproc resume`.",
        pause.since.timestamp(),
    )


def _behind(case: Case, _: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    arrival = sum(each.arrival_per_s or 0 for each in stuck)
    drain = sum(each.drain_per_s or 0 for each in stuck)
    falls = "falls" if len(stuck) == 1 else "fall"
    relieved = case.limited_by_member(stuck)
    hot = [each for each in stuck if each.seen.partition_id not in relieved]
    remedies = []
    if relieved:
        remedies.append(
            "More members help as long as there are more partitions than members; `eventproc "
            "scale` says how many."
        )
    if hot:
        remedies.append(_remedy_of_hot(hot))
    return (
        (
            f"{_subject(stuck)} {falls} behind: {arrival:,.0f} events arrive in a second, and "
            f"{drain:,.0f} are handled."
        ),
        " ".join(remedies),
        min(each.points[0].at_s for each in stuck),
    )


def _remedy_of_hot(hot: Sequence[PartitionMemory]) -> str:
    return (
        f"More members do not help {_subject(hot, 'partition')}: one member serves a partition at "
        "a time. Look at what is published (docs/operations.md, Showing an event). If all these "
        "events have one key, publish with a key of more values; if they have none, their "
        "publisher sends them to the partition by its number. If there are several keys, and the "
        "handler keeps no state, it can take several at once (--key-concurrency)."
    )


def _hot(case: Case, _: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    lag, whole = stuck[0].seen.lag or 0, sum(each.seen.lag or 0 for each in case.memory.values())
    text = f"{_subject(stuck)} has {lag:,} of the {whole:,} events that wait."
    since_s = stuck[0].works_since_s or case.group.at_s
    if stuck[0].drain_per_s is not None:
        return text, _remedy_of_hot(stuck), since_s
    first = (
        "Look again. If they get fewer, do nothing. If its position stands still, its handler "
        "fails or hangs, as the owner's log says. Otherwise:"
    )
    return text, f"{first} {_remedy_of_hot(stuck)}", since_s


def _unsure(case: Case, _: str, stuck: Sequence[PartitionMemory]) -> _Explained:
    waiting = sum(each.seen.lag or 0 for each in stuck)
    since_s = min(each.moved_at_s for each in stuck)
    allowed = span_text(case.rules.stuck_after_s)
    has = "has" if len(stuck) == 1 else "have"
    owners = sorted({each.seen.owner_id or "nobody" for each in stuck})
    return (
        (
            f"{_subject(stuck)} {has} not moved for {span_text(case.group.at_s - since_s)}, and "
            f"{waiting:,} events wait; the newest of them is less than {allowed} old."
        ),
        (
            f"It may be ordinary work. Look again in {allowed} (--watch does): if the position is "
            "the same then, it is stuck. Look for handler_failed and event_stopped_partition in "
            f"the log of {listed(owners)}."
        ),
        since_s,
    )


_EXPLAIN: Final[dict[Kind, Callable[[Case, str, Sequence[PartitionMemory]], _Explained]]] = {
    Kind.DAMAGED: _damaged,
    Kind.UNOWNED: _unowned,
    Kind.NOT_MOVING: _not_moving,
    Kind.CONFLICT: _conflict,
    Kind.PAUSED: _paused,
    Kind.BEHIND: _behind,
    Kind.HOT: _hot,
    Kind.UNSURE: _unsure,
}
