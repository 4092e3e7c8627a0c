"""A view of a group: the owner, position and lag of each partition, and the members."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from eventproc._command.group.readings import Readings, age_s
from eventproc._core.delivery.checkpoints import (
    handled_in_hub,
    is_beyond_end,
    is_moved_by_operator,
    is_of_other_hub,
    is_older_than_hub,
)
from eventproc._core.delivery.offset_format import offset_format_in
from eventproc._core.ownership.group import active_members
from eventproc._core.ownership.liveness import fresh_owners, live_members
from eventproc._core.ownership.pauses import NO_PAUSES, Pauses
from eventproc._core.ownership.published_plans import leader
from eventproc._core.placement.even import Even
from eventproc._core.placement.names import most_named
from eventproc._core.placement.published import PREFIX
from eventproc._core.watching.causes import Finding
from eventproc._core.watching.group import (
    HubEnd,
    WatchedGroup,
    WatchedMember,
    WatchedPartition,
    listed,
)
from eventproc._group.resources.names import name_of
from eventproc.errors import HubRecreatedError
from eventproc.models import (
    Checkpoint,
    ConsumerGroup,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OffsetFormat,
    PartitionProperties,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """The published plan of a group."""

    leader: str | None
    """The member that publishes the next published plan; ``None`` if no member can."""

    number: int | None
    """Of the published plan that is stored; ``None`` if there is none yet, or it cannot be read."""

    error: str | None
    """Why it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group at one moment."""

    group: ConsumerGroup
    as_of: datetime
    """The time of the view, by the store's clock."""

    placement: str | None
    """The name of the placement that the group follows; ``None`` if no member has a share."""

    published: PlanRow | None
    """What is published, if the group follows a published plan."""

    partitions: tuple[WatchedPartition, ...]
    members: tuple[WatchedMember, ...]
    dead: tuple[WatchedMember, ...] = ()
    """Those that have a record or are named as owners, and did not renew in time."""

    pauses: Pauses = NO_PAUSES
    findings: tuple[Finding, ...] = ()
    """What needs attention, the most urgent first."""

    others: tuple[ConsumerGroup, ...] = ()
    """Others of the store: those of the same hub, or all if it has no record of this group."""

    live_others: frozenset[ConsumerGroup] | None = None
    """Those of them that have a live member; ``None``: it was not looked at."""

    @property
    def is_recorded(self) -> bool:
        """Whether the store has any record of the group."""
        return bool(self.members or self.dead) or any(
            row.renewed_ago_s is not None or row.written_ago_s is not None
            for row in self.partitions
        )

    @property
    def watched(self) -> WatchedGroup:
        """The group as its findings are made of."""
        return WatchedGroup(
            at_s=self.as_of.timestamp(),
            partitions=self.partitions,
            members=(*self.members, *self.dead),
        )

    @property
    def lag(self) -> int | None:
        """Events after the checkpoints of all partitions; ``None`` if the hub was not asked."""
        lags = [row.lag for row in self.partitions if row.lag is not None]
        return sum(lags) if lags else None


def view_of(group: ConsumerGroup, readings: Readings, *, expiration: timedelta) -> GroupView:
    """Make the view from what was read; partitions are ordered by their ids."""
    owned, now = readings.owned, readings.owned.as_of
    live = fresh_owners(owned, expiration)
    ownership_by_id = {record.partition_id: record for record in owned.ownerships}
    checkpoint_by_id = {record.partition_id: record for record in readings.checkpoints}
    rows = []
    for partition_id in in_order({*ownership_by_id, *checkpoint_by_id, *readings.ends}):
        record = ownership_by_id.get(partition_id)
        checkpoint = checkpoint_by_id.get(partition_id)
        owner_id = None if record is None else record.owner_id
        rows.append(
            WatchedPartition(
                partition_id=partition_id,
                name=name_of(partition_id) if group.is_of_resources else partition_id,
                owner_id=owner_id,
                is_expired=owner_id is not None and partition_id not in live,
                renewed_ago_s=None if record is None else age_s(record.last_modified, now),
                epoch=0 if record is None else record.epoch,
                position=None if checkpoint is None else checkpoint.sequence_number,
                written_ago_s=(
                    None if checkpoint is None else age_s(checkpoint.last_modified, now)
                ),
                is_moved_by_operator=checkpoint is not None and is_moved_by_operator(checkpoint),
                error=readings.damage.get(partition_id)
                or _recreation(readings, partition_id, checkpoint),
                pause=readings.pauses.of(partition_id),
                end=_end(readings, partition_id, checkpoint),
            )
        )
    fresh = {member.owner_id for member in live_members(readings.present, (), expiration)}
    members = _members(readings, rows, fresh.union(live.values()))
    sharing = _sharing(readings.present, rows, expiration)
    placement = _placement(sharing)
    return GroupView(
        group=group,
        as_of=now,
        placement=placement,
        published=_plan_row(placement, sharing, readings),
        partitions=tuple(rows),
        members=tuple(member for member in members if member.is_live),
        dead=tuple(member for member in members if not member.is_live),
        pauses=readings.pauses,
    )


def _recreation(readings: Readings, partition_id: str, checkpoint: Checkpoint | None) -> str | None:
    """Return an error if the checkpoint does not fit the hub, which was perhaps created again."""
    end = None if partition_id in readings.old_ends else readings.ends.get(partition_id)
    number = _counted_from(checkpoint)
    counted = None if number is None else end
    if checkpoint is None or not is_of_other_hub(checkpoint, counted, readings.hub_created_at):
        return None
    is_older = is_older_than_hub(checkpoint, readings.hub_created_at)
    last = end.last_enqueued_sequence_number if end is not None else None
    return str(HubRecreatedError(partition_id, number, is_older_than_hub=is_older, last=last))


def _end(readings: Readings, partition_id: str, checkpoint: Checkpoint | None) -> HubEnd | None:
    """Return the partition's end with the lag; of a queue, this is what is not done."""
    end = readings.ends.get(partition_id)
    if end is None:
        return None
    number = _counted_from(checkpoint)
    counted = None if number is None else checkpoint
    now, newest = readings.owned.as_of, end.last_enqueued_time
    is_ahead = partition_id in readings.old_ends and is_beyond_end(number, end)
    return HubEnd(
        at_s=now.timestamp(),
        last=end.last_enqueued_sequence_number,
        lag=0 if is_ahead else lag_of(end, counted, readings.hub_created_at),
        newest_ago_s=None if newest is None else age_s(newest, now),
    )


def _counted_from(checkpoint: Checkpoint | None) -> int | None:
    """Return the position that a lag counts from; a queue has only what is not done."""
    if checkpoint is None or offset_format_in(checkpoint) is OffsetFormat.QUEUE:
        return None
    return checkpoint.sequence_number


def lag_of(
    end: PartitionProperties, checkpoint: Checkpoint | None, hub_created_at: datetime | None
) -> int:
    """Count the events in the hub after a checkpoint."""
    if end.is_empty:
        return 0
    before_first = end.beginning_sequence_number - 1
    handled = handled_in_hub(checkpoint, end, hub_created_at)
    start = before_first if handled is None else max(handled, before_first)
    return end.last_enqueued_sequence_number - start


def _members(
    readings: Readings, rows: Sequence[WatchedPartition], live: Collection[str]
) -> tuple[WatchedMember, ...]:
    """Return all members with a record, and all owners; *live* are those that are alive."""
    present, counts = readings.present, Counter(row.owner_id for row in rows if not row.is_expired)
    records = {member.owner_id: member for member in present.members}
    silent_s = {
        owner_id: age_s(record.last_modified, present.as_of)
        for owner_id, record in records.items()
        if record.last_modified is not None
    }
    for row in rows:
        if row.owner_id is not None and row.renewed_ago_s is not None:
            known_s = silent_s.get(row.owner_id, row.renewed_ago_s)
            silent_s[row.owner_id] = min(row.renewed_ago_s, known_s)
    owners = {row.owner_id for row in rows if row.owner_id is not None}
    return tuple(
        WatchedMember(
            record=records.get(owner_id)
            or Member(owner_id=owner_id, incarnation="", hands_over=False),
            has_record=owner_id in records,
            is_live=owner_id in live,
            partition_count=counts[owner_id],
            silent_s=silent_s.get(owner_id),
        )
        for owner_id in sorted(owners.union(live, records))
    )


def _sharing(
    present: MembershipSnapshot, rows: Sequence[WatchedPartition], expiration: timedelta
) -> dict[str, Member | None]:
    """Return the members that have a share; a foreign one has no record."""
    owners = {row.partition_id: row.owner_id for row in rows if row.owner_id and not row.is_expired}
    members = live_members(present, owners.values(), expiration)
    leaving = {member.owner_id for member in members if member.is_leaving}
    sharing = active_members(
        len(rows),
        owners,
        {*owners.values(), *(member.owner_id for member in members)} - leaving,
        {member.owner_id for member in members if member.status is MemberStatus.STANDBY},
    )
    return dict.fromkeys(sharing) | {m.owner_id: m for m in members if m.owner_id in sharing}


def _placement(sharing: Mapping[str, Member | None]) -> str | None:
    """Return the name of the placement that the processors follow, by the rule that they use.

    Of a placement that is the user's own only the name is known, so it is taken as one that does
    not admit foreign members, which is the default.
    """
    names = [member.placement for member in sharing.values() if member is not None]
    if not names:
        return None
    has_foreign = len(names) < len(sharing)
    return Even().name if has_foreign else most_named(names)


def _plan_row(
    placement: str | None, sharing: Mapping[str, Member | None], readings: Readings
) -> PlanRow | None:
    """Return what is published, and the leader by the rule that the processors use."""
    if placement is None or not placement.startswith(PREFIX):
        return None
    candidates = {
        owner_id: member
        for owner_id, member in sharing.items()
        if member is not None and member.placement == placement
    }
    return PlanRow(
        leader=leader(candidates, readings.published),
        number=None if readings.published is None else readings.published.number,
        error=readings.plan_error,
    )


def groups_text(groups: Sequence[ConsumerGroup]) -> str:
    """A sentence that names what else a store has; empty if that is nothing."""
    named = [
        each.name
        if each.is_of_resources
        else f"{each.name} of {each.eventhub_name} ({each.fully_qualified_namespace})"
        for each in groups
    ]
    return f". The store has records of: {listed(named)}" if named else ""


def in_order(partition_ids: Collection[str]) -> list[str]:
    """Sort partition ids: numbers as numbers, the rest as text."""
    return sorted(partition_ids, key=lambda p: (not p.isdecimal(), p.zfill(10), p))
