"""What happened between two successive readings, as entries of a log.

Rule 1: an entry is a fact that the records show. They do not show whether a live member handed a
partition over or another one stole it. So it counts as stolen only if the member never hands over.
Rule 2: what one member did to several partitions at once is one entry.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Final

from eventproc._core.watching.causes import Finding
from eventproc._core.watching.findings import is_late, stuck_partitions
from eventproc._core.watching.group import (
    WatchedGroup,
    WatchedMember,
    WatchedPartition,
    listed,
    span_text,
)
from eventproc.models import MemberStatus


class Tone(StrEnum):
    """How an entry is to be taken."""

    PLAIN = "plain"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the log."""

    at_s: float
    kind: str
    """One word or two, for filters: ``joined``, ``taken over``."""

    text: str
    tone: Tone = Tone.PLAIN
    member_ids: tuple[str, ...] = ()
    partition_ids: tuple[str, ...] = ()


def entries_between(
    before: WatchedGroup, after: WatchedGroup, *, expiration_s: float
) -> list[Entry]:
    """Return what happened to members, partitions and checkpoints, in this order."""
    after = _with_expired(before, after, expiration_s)
    return [
        *_members(before, after),
        *_moves(before, after),
        *(
            entry
            for p in after.partitions
            if (former := before.partition_by_id.get(p.partition_id)) is not None
            for entry in _checkpoint(former, p, after.at_s)
        ),
    ]


def entries_of_findings(
    before: Iterable[Finding], after: Iterable[Finding], group: WatchedGroup
) -> list[Entry]:
    """Return which partitions became stuck, and which are handled again."""
    was, now = stuck_partitions(before), stuck_partitions(after)
    entries = [
        Entry(
            at_s=group.at_s,
            kind="stuck",
            text=finding.text,
            tone=Tone.BAD,
            partition_ids=new,
            member_ids=finding.member_ids,
        )
        for finding in {id(each): each for each in now.values()}.values()
        if (new := tuple(p for p in finding.partition_ids if p not in was))
    ]
    freed: defaultdict[float, list[str]] = defaultdict(list)
    for partition_id, finding in was.items():
        if partition_id not in now and partition_id in group.partition_by_id:
            freed[finding.since_s].append(partition_id)
    return entries + [
        Entry(
            at_s=group.at_s,
            kind="moves again",
            text=f"P{_partitions(ids, group)[1:]} {'is' if len(ids) == 1 else 'are'} handled "
            f"again, after {span_text(group.at_s - since_s)}",
            tone=Tone.GOOD,
            partition_ids=tuple(ids),
        )
        for since_s, ids in freed.items()
    ]


# --- members -------------------------------------------------------------------------------------

_STATUS: Final = {
    MemberStatus.STANDBY: "waits on standby",
    MemberStatus.LEAVING: "is leaving, and gives up its partitions",
    MemberStatus.RESTARTING: "restarts, and keeps its partitions meanwhile",
    MemberStatus.ACTIVE: "takes part",
}


RESOLUTION_S: Final = 1.0
"""The times in blob storage are whole seconds."""


def _with_expired(before: WatchedGroup, after: WatchedGroup, expiration_s: float) -> WatchedGroup:
    """Complete a reading by what the one before it says of members that have expired since.

    If no record names one now, it is added as dead: in the first reading it was late already, so it
    did not leave gracefully. If one still has its member record, others may have its leases, which
    it renewed last.
    """
    between_s = after.at_s - before.at_s
    silent_s = {
        member.owner_id: member.silent_s + between_s
        for member in before.members
        if member.silent_s is not None
    }
    expired = [
        replace(member, is_live=False, silent_s=silent_s[member.owner_id])
        for member in before.members
        if member.is_live
        and member.owner_id not in after.member_by_id
        and is_late(member.silent_s, expiration_s)
        and silent_s[member.owner_id] >= expiration_s - RESOLUTION_S
    ]
    named = [
        replace(member, silent_s=min(member.silent_s, silent_s.get(member.owner_id, inf)))
        if member.silent_s is not None
        else member
        for member in after.members
    ]
    return replace(after, members=(*named, *expired))


def _members(before: WatchedGroup, after: WatchedGroup) -> Iterable[Entry]:
    for owner_id in sorted({*before.member_by_id, *after.member_by_id}):
        former, now = before.member_by_id.get(owner_id), after.member_by_id.get(owner_id)
        found = _of_member(former, now, before)
        if found is not None:
            kind, text, tone = found
            yield Entry(at_s=after.at_s, kind=kind, text=text, tone=tone, member_ids=(owner_id,))


def _of_member(
    former: WatchedMember | None, now: WatchedMember | None, before: WatchedGroup
) -> tuple[str, str, Tone] | None:
    """Return kind, text and tone of what happened to one member; ``None`` if nothing did."""
    was_live = former is not None and former.is_live
    if now is None:
        assert former is not None, "it is in one of the two readings"
        says = "left" if former.has_record else "owns nothing any more"
        return ("left", f"{former.owner_id} {says}", Tone.PLAIN) if was_live else None
    if former is None or now.is_live is not former.is_live:
        return _of_life(former, now, before) if now.is_live or was_live else None
    if former.record.incarnation != now.record.incarnation and former.has_record and now.has_record:
        return "restarted", f"{now.owner_id} was started anew", Tone.PLAIN
    if (
        now.is_live
        and former.record.status is not now.record.status
        and now.record.status in _STATUS
    ):
        return now.record.status.value, f"{now.owner_id} {_STATUS[now.record.status]}", Tone.PLAIN
    return None


def _of_life(
    former: WatchedMember | None, now: WatchedMember, before: WatchedGroup
) -> tuple[str, str, Tone]:
    if now.is_live and former is None:
        sdk = "" if now.has_record else ", a processor of an Azure SDK,"
        return "joined", f"{now.owner_id}{sdk} joined", Tone.GOOD
    if now.is_live:
        return "returned", f"{now.owner_id} renews again", Tone.GOOD
    count = sum(p.owner_id == now.owner_id for p in before.partitions)
    silent = "" if now.silent_s is None else f" for {span_text(now.silent_s)}"
    partitions = f"{count} partition{'s' * (count != 1)}"
    return (
        "died",
        f"{now.owner_id} has not renewed{silent} and counts as dead; it had {partitions}",
        Tone.BAD,
    )


# --- partitions ----------------------------------------------------------------------------------


def _partitions(ids: Iterable[str], group: WatchedGroup) -> str:
    names = [group.partition_by_id[p].name for p in ids]
    return f"{'partition' if len(names) == 1 else 'partitions'} {listed(names)}"


def _moves(before: WatchedGroup, after: WatchedGroup) -> Iterable[Entry]:
    moved: defaultdict[tuple[str, str | None, str | None], list[str]] = defaultdict(list)
    for p in after.partitions:
        former = before.partition_by_id.get(p.partition_id)
        owner_id = None if former is None else former.owner_id
        if p.owner_id != owner_id:
            kind = "claimed" if former is None else _kind(former, p, before, after)
            moved[kind, owner_id, p.owner_id].append(p.partition_id)
    for (kind, former_id, owner_id), ids in moved.items():
        subject = _partitions(ids, after)
        yield Entry(
            at_s=after.at_s,
            kind=kind,
            text=_sentence(kind, subject, former_id, owner_id),
            tone=Tone.WARNING if kind == "stolen" else Tone.PLAIN,
            member_ids=tuple(filter(None, (former_id, owner_id))),
            partition_ids=tuple(ids),
        )


_SENTENCES: Final = {
    "claimed": "{b} claimed {p}",
    "released": "{a} released {p}",
    "moved": "{p} moved from {a} to {b}",
    "taken over": "{b} took over {p} of {a}, which did not renew",
    "followed": "{b} claimed {p} after {a}, which left",
    "stolen": "{b} took {p} from {a}, which was alive",
}


def _sentence(kind: str, subject: str, former_id: str | None, owner_id: str | None) -> str:
    text = _SENTENCES[kind].format(p=subject, a=former_id, b=owner_id)
    return f"P{text[1:]}" if kind == "moved" else text


def _kind(
    former: WatchedPartition, p: WatchedPartition, before: WatchedGroup, after: WatchedGroup
) -> str:
    if former.owner_id is None:
        return "claimed"
    if p.owner_id is None:
        return "released"
    if former.owner_id in after.live_ids:
        return "moved" if after.member_by_id[former.owner_id].record.hands_over else "stolen"
    member = before.member_by_id.get(former.owner_id)
    is_leaving = member is not None and member.record.is_leaving
    is_gone = former.owner_id not in after.member_by_id
    has_renewed = not former.is_expired and (member is None or member.has_record)
    return "followed" if is_leaving or (is_gone and has_renewed) else "taken over"


def _checkpoint(former: WatchedPartition, p: WatchedPartition, at_s: float) -> Iterable[Entry]:
    found: tuple[str, str, Tone] | None = None
    to = "none" if p.position is None else f"{p.position:,}"
    has_moved = former.position is not None and p.position != former.position
    from_to = f" from {former.position:,} to {to}" if has_moved else ""
    if p.error is not None and former.error is None:
        found = "damaged", f"The checkpoint of partition {p.name} cannot be read", Tone.BAD
    elif p.error is None and former.error is not None:
        found = "repaired", f"The checkpoint of partition {p.name} can be read again", Tone.GOOD
    elif p.is_moved_by_operator and (has_moved or not former.is_moved_by_operator):
        text = f"An operator wrote the checkpoint of partition {p.name}{from_to}"
        found = "operator", text, Tone.WARNING
    elif former.position is not None and (p.position is None or p.position < former.position):
        text = f"The checkpoint of partition {p.name} went back{from_to}"
        found = "went back", text, Tone.WARNING
    if found is not None:
        kind, text, tone = found
        yield Entry(at_s=at_s, kind=kind, text=text, tone=tone, partition_ids=(p.partition_id,))
