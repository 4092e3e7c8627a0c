"""Builders of groups as a reading shows them."""

from dataclasses import fields, replace

from eventproc._core.watching.causes import WatchRules
from eventproc._core.watching.findings import findings_of
from eventproc._core.watching.group import HubEnd, WatchedGroup, WatchedMember, WatchedPartition
from eventproc._core.watching.memory import Memory, remember
from eventproc.models import Member

RULES = WatchRules(expiration_s=30, stuck_after_s=60)
RECORD_FIELDS = {field.name for field in fields(Member)}


def partition(partition_id, owner_id="a", **changes):
    """Return a partition with a fresh lease, whose checkpoint is at 10."""
    known = WatchedPartition(
        partition_id=partition_id,
        name=partition_id,
        owner_id=owner_id,
        renewed_ago_s=1.0,
        position=10,
        written_ago_s=1.0,
    )
    return replace(known, **changes)


def end(at_s, last, position=10, newest_ago_s=None):
    """Return the hub's end of a partition whose checkpoint is at *position*."""
    return HubEnd(at_s=at_s, last=last, lag=max(0, last - position), newest_ago_s=newest_ago_s)


def member(owner_id, **changes):
    """Return a live member that renewed a second ago."""
    of_record = {name: changes.pop(name) for name in RECORD_FIELDS & changes.keys()}
    record = Member(owner_id=owner_id, **{"incarnation": "", **of_record})
    return replace(WatchedMember(record=record, silent_s=1.0), **changes)


def group(at_s, partitions, members=None):
    """Return a group; by default its members are the owners."""
    owners = sorted({p.owner_id for p in partitions if p.owner_id})
    found = [member(owner_id) for owner_id in owners] if members is None else members
    return WatchedGroup(at_s=at_s, partitions=tuple(partitions), members=tuple(found))


def watched(readings):
    """Return memory and findings after these readings."""
    memory: Memory = {}
    for reading in readings:
        memory = remember(memory, reading)
    return memory, findings_of(memory, readings[-1], RULES)
