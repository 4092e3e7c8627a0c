"""What the page is sent, as JSON: pure functions of a history and the newest reading.

A message names owners and partitions by their number in its own lists, so that a thousand
partitions fit into some ten kilobytes. ``None`` stands for what is not known.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from eventproc._core.watching.causes import Finding
from eventproc._core.watching.changes import Entry
from eventproc._core.watching.findings import is_late, stuck_partitions
from eventproc._core.watching.group import WatchedGroup, WatchedMember
from eventproc._core.watching.history import History, Move, Sample
from eventproc._core.watching.memory import Memory
from eventproc.models import MemberStatus

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The newest reading, and what follows from it."""

    group: WatchedGroup
    memory: Memory
    findings: tuple[Finding, ...]


def sample_of(shown: Shown, number: int = 0) -> Sample:
    """Return the totals of a reading."""
    partitions = shown.group.partitions
    lags = [p.lag for p in partitions if p.lag is not None]
    return Sample(
        number=number,
        at_s=shown.group.at_s,
        lag=sum(lags) if lags else None,
        arrival_per_s=_total(known.arrival_per_s for known in shown.memory.values()),
        drain_per_s=_total(known.drain_per_s for known in shown.memory.values()),
        members=len(shown.group.live_ids),
        unserved=sum(p.server_id is None for p in partitions),
        stuck=len(stuck_partitions(shown.findings)),
    )


def _total(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def state_json(shown: Shown, history: History, *, since: int, expiration_s: float) -> Json:
    """Return the newest state, and of the history what came after the reading *since*.

    With *since* 0 it is everything.
    """
    is_whole = since < max(1, history.dropped_number)
    since = 0 if is_whole else since
    moves = history.moves_since(since)
    ids = [p.partition_id for p in shown.group.partitions]
    owners = _owners(shown, history, moves, is_whole=is_whole)
    numbers = _Numbers(
        owner={owner_id: n for n, owner_id in enumerate(owners)},
        partition={partition_id: n for n, partition_id in enumerate(ids)},
    )
    return {
        "is_whole": is_whole,
        "number": history.number,
        "at": _rounded(shown.group.at_s),
        "begin": _rounded(history.begin_s),
        "owners": [[owner_id, history.colours.get(owner_id, 0)] for owner_id in owners],
        "partitions": _partitions(shown, numbers),
        "members": _members(shown, expiration_s),
        "findings": [_finding(each, numbers) for each in shown.findings],
        "moves": [value for move in moves for value in numbers.of_move(move)],
        "base": [
            value
            for partition_id, holder in (history.base.items() if is_whole else ())
            for value in numbers.of_move(Move(0, history.begin_s or 0, partition_id, holder))
        ],
        "samples": [_sample(each) for each in history.samples_since(since)],
        "gaps": [[_rounded(gap.begin_s), _rounded(gap.end_s)] for gap in history.gaps],
        "log": [_entry(entry) for entry in history.entries_since(since)],
    }


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The number of each owner and partition in one message."""

    owner: dict[str, int]
    partition: dict[str, int]

    def of_owner(self, owner_id: str | None) -> int:
        return -1 if owner_id is None else self.owner[owner_id]

    def of_move(self, move: Move) -> Sequence[float | int | None]:
        """Return time, partition, owner and whether its lease expired.

        Nothing for a partition that is not there any more.
        """
        if move.partition_id not in self.partition:
            return ()
        return (
            _rounded(move.at_s),
            self.partition[move.partition_id],
            self.of_owner(move.holder.owner_id),
            int(move.holder.is_expired),
        )


def _owners(shown: Shown, history: History, moves: Sequence[Move], *, is_whole: bool) -> list[str]:
    """Return every owner that the message names, in order."""
    named = {member.owner_id for member in shown.group.members}
    named |= {p.owner_id for p in shown.group.partitions if p.owner_id}
    named |= {move.holder.owner_id for move in moves if move.holder.owner_id}
    if is_whole:
        named |= {holder.owner_id for holder in history.base.values() if holder.owner_id}
    return sorted(named)


def _partitions(shown: Shown, numbers: _Numbers) -> Json:
    """Return a list for each column."""
    partitions = shown.group.partitions
    known = [shown.memory[p.partition_id] for p in partitions]
    return {
        "id": [p.partition_id for p in partitions],
        "name": [p.name for p in partitions],
        "owner": [numbers.of_owner(p.owner_id) for p in partitions],
        "expired": [int(p.is_expired) for p in partitions],
        "renewed": [_rounded(p.renewed_ago_s) for p in partitions],
        "position": [p.position for p in partitions],
        "written": [_rounded(p.written_ago_s) for p in partitions],
        "lag": [p.lag for p in partitions],
        "arrival": [_rounded(each.arrival_per_s) for each in known],
        "drain": [_rounded(each.drain_per_s) for each in known],
    }


def _members(shown: Shown, expiration_s: float) -> list[Json]:
    counts = Counter(p.owner_id for p in shown.group.partitions)
    rates: defaultdict[str | None, list[float | None]] = defaultdict(list)
    for known in shown.memory.values():
        rates[known.seen.owner_id].append(known.drain_per_s)
    return [
        {
            "id": member.owner_id,
            "state": _state(member, expiration_s),
            "partitions": counts[member.owner_id],
            "drain": _rounded(_total(rates[member.owner_id])),
            "silent": _rounded(member.silent_s),
            "version": member.record.version,
            "placement": member.record.placement if member.has_record else "",
            "is_foreign": not member.has_record,
        }
        for member in shown.group.members
    ]


def _state(member: WatchedMember, expiration_s: float) -> str:
    if not member.is_live:
        return "dead"
    if member.record.status is MemberStatus.RESTARTING:
        return "restarting"
    if is_late(member.silent_s, expiration_s):
        return "late"
    return member.record.status.name.lower()


def _finding(finding: Finding, numbers: _Numbers) -> Json:
    return {
        "kind": finding.kind.value,
        "is_stuck": finding.is_stuck,
        "text": finding.text,
        "remedy": finding.remedy,
        "since": _rounded(finding.since_s),
        "partitions": [numbers.partition[p] for p in finding.partition_ids],
        "members": list(finding.member_ids),
    }


def _sample(sample: Sample) -> list[float | int | None]:
    return [
        _rounded(sample.at_s),
        sample.lag,
        _rounded(sample.arrival_per_s),
        _rounded(sample.drain_per_s),
        sample.members,
        sample.unserved,
        sample.stuck,
    ]


def _entry(entry: Entry) -> Json:
    return {
        "at": _rounded(entry.at_s),
        "kind": entry.kind,
        "text": entry.text,
        "tone": entry.tone.value,
        "members": list(entry.member_ids),
        "count": len(entry.partition_ids),
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)
