"""What a group looks like from outside: who owns what, how far each is, who is there.

Rule: a view is made of readings alone. Nothing here writes, claims, or opens a receiver.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from eventproc.core.lease import is_alive
from eventproc.membership import LeaseMode, MembershipSnapshot, MemberStatus
from eventproc.models import Checkpoint, ConsumerGroup, OwnershipSnapshot, PartitionProperties
from eventproc.ports import CheckpointStore, EventSource


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """One partition of a group."""

    partition_id: str
    owner_id: str | None
    """``None``: nobody has it, or it was released."""

    record_age: timedelta | None
    """Since the ownership record was last written: claimed, renewed or released."""

    is_expired: bool
    """Its owner did not renew in time: somebody else will take it."""

    sequence_number: int | None
    """The last event that a checkpoint covers."""

    checkpoint_age: timedelta | None
    lag: int | None
    """Events in the hub behind the checkpoint; ``None`` if the hub was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """One processor of a group."""

    owner_id: str
    partition_count: int
    has_presence: bool
    """False for one of another SDK: only its ownership records tell of it."""

    is_leaving: bool
    hands_over: bool
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A whole group, at one moment."""

    group: ConsumerGroup
    as_of: datetime | None
    """By the store's own clock."""

    partitions: tuple[PartitionRow, ...]
    members: tuple[MemberRow, ...]

    @property
    def lag(self) -> int | None:
        """Events behind the checkpoints of all partitions; ``None`` if the hub was not asked."""
        lags = [row.lag for row in self.partitions if row.lag is not None]
        return sum(lags) if lags else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What the store said, and the hub if it was asked."""

    owned: OwnershipSnapshot
    present: MembershipSnapshot
    checkpoints: Sequence[Checkpoint]
    ends: Mapping[str, PartitionProperties]
    """By partition id; empty if the hub was not asked."""


async def read_group(
    store: CheckpointStore, group: ConsumerGroup, source: EventSource | None
) -> Readings:
    """Ask the store, and the hub if a source is given, for all that a view shows.

    Raises:
        StoreUnavailableError: the store did not answer.
        SourceUnavailableError: the hub did not answer.
    """
    ends: dict[str, PartitionProperties] = {}
    present = await store.list_members(group)
    owned = await store.list_ownership(group)
    checkpoints = await store.list_checkpoints(group)
    if source is not None:
        # After the checkpoints, so that no lag comes out below zero.
        ids = await source.partition_ids()
        properties = await asyncio.gather(*(source.partition_properties(p) for p in ids))
        ends = {found.partition_id: found for found in properties}
    return Readings(owned=owned, present=present, checkpoints=checkpoints, ends=ends)


def view_of(group: ConsumerGroup, readings: Readings, *, expiration: timedelta) -> GroupView:
    """Put the readings together; partitions in the order of their ids."""
    owned, now = readings.owned, readings.owned.as_of
    alive, dead = _sessions(readings.present, expiration)
    ownership_by_id = {record.partition_id: record for record in owned.ownerships}
    checkpoint_by_id = {record.partition_id: record for record in readings.checkpoints}
    rows = []
    for partition_id in in_order({*ownership_by_id, *checkpoint_by_id, *readings.ends}):
        record = ownership_by_id.get(partition_id)
        checkpoint = checkpoint_by_id.get(partition_id)
        age = None if record is None or now is None else _age(record.last_modified, now)
        position = None if checkpoint is None else checkpoint.sequence_number
        owner_id = None if record is None else record.owner_id
        rows.append(
            PartitionRow(
                partition_id=partition_id,
                owner_id=owner_id,
                record_age=age,
                is_expired=owner_id in dead
                or bool(
                    owner_id not in alive
                    and owner_id
                    and age
                    and age > expiration + owned.resolution
                ),
                sequence_number=position,
                checkpoint_age=(
                    None
                    if checkpoint is None or now is None
                    else _age(checkpoint.last_modified, now)
                ),
                lag=lag_of(readings.ends[partition_id], position)
                if partition_id in readings.ends
                else None,
            )
        )
    members = _members(readings.present, rows, expiration)
    return GroupView(group=group, as_of=now, partitions=tuple(rows), members=members)


def _sessions(
    present: MembershipSnapshot, expiration: timedelta
) -> tuple[frozenset[str], frozenset[str]]:
    """Who keeps everything it owns alive by its presence, and who does so no longer."""
    sessions = [m for m in present.members if m.lease_mode is LeaseMode.SESSION]
    silent = {
        member.owner_id
        for member in sessions
        if member.status is MemberStatus.DEAD or not is_alive(member, present, expiration)
    }
    return frozenset(m.owner_id for m in sessions) - silent, frozenset(silent)


def _age(then: datetime, now: datetime) -> timedelta:
    return max(timedelta(0), now - then)


def lag_of(end: PartitionProperties, position: int | None) -> int:
    """Events in the hub behind a position."""
    if end.is_empty:
        return 0
    before_first = end.beginning_sequence_number - 1
    handled = before_first if position is None else max(position, before_first)
    return max(0, end.last_enqueued_sequence_number - handled)


def _members(
    present: MembershipSnapshot, rows: Sequence[PartitionRow], expiration: timedelta
) -> tuple[MemberRow, ...]:
    """Everybody who owns something that is not expired, or says that it is there."""
    counts = Counter(row.owner_id for row in rows if row.owner_id and not row.is_expired)
    by_id = {member.owner_id: member for member in present.members}
    fresh = {
        member.owner_id
        for member in present.members
        if member.status is not MemberStatus.DEAD and is_alive(member, present, expiration)
    }
    return tuple(
        MemberRow(
            owner_id=owner_id,
            partition_count=counts[owner_id],
            has_presence=owner_id in by_id,
            is_leaving=owner_id in by_id and by_id[owner_id].is_leaving,
            hands_over=owner_id in by_id and by_id[owner_id].hands_over,
            version=by_id[owner_id].version if owner_id in by_id else "",
        )
        for owner_id in sorted({*counts, *fresh})
    )


def in_order(partition_ids: Collection[str]) -> list[str]:
    """Sort partition ids: numbers as numbers, the rest as text."""
    return sorted(partition_ids, key=lambda p: (not p.isdecimal(), p.zfill(10), p))
