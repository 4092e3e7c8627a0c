"""Reads what a vote needs: records of the store, and the ends of the hub's partitions.

It only reads, so it has no effect on the group, whichever SDK its processors use.
"""

from collections.abc import Callable
from datetime import timedelta

from eventproc.concurrency.tasks import together
from eventproc.core.checkpoints import handled_in_hub
from eventproc.core.ownership.liveness import fresh_owners, live_members
from eventproc.core.pauses import NO_PAUSES, PAUSES_RECORD, Pauses, pauses_in, unreadable
from eventproc.core.scaling.readings import PartitionReading, Reading
from eventproc.errors import StoreCorruptError
from eventproc.models import (
    ConsumerGroup,
    MembershipSnapshot,
    MemberStatus,
    PartitionProperties,
)
from eventproc.ports import CheckpointStore, EventSource


async def read_group(
    store: CheckpointStore,
    group: ConsumerGroup,
    source: EventSource,
    *,
    expiration: timedelta,
    clock: Callable[[], float],
) -> Reading:
    """Read a group once.

    Args:
        store: An open store.
        group: The group.
        source: An open source.
        expiration: The group's ``ownership_expiration``.
        clock: Returns monotonic seconds.

    Raises:
        StoreError: The store did not answer, or refuses.
        SourceError: The hub did not answer, or refuses.
    """
    present = await store.list_members(group)
    owned = await store.list_ownership(group)
    checkpoints = await store.list_checkpoints(group)
    # Read after the checkpoints, so that no backlog is negative.
    ids = await source.partition_ids()
    at_s = clock()
    ends = await together(*(source.partition_properties(p) for p in ids))
    owners = fresh_owners(owned, expiration)
    found = {c.partition_id: c for c in checkpoints}
    pauses = await _pauses(store, group, present)
    return Reading(
        at_s=at_s,
        partitions={
            end.partition_id: _partition(
                end,
                handled_in_hub(found.get(end.partition_id), end, source.created_at),
                owners.get(end.partition_id),
                is_paused=pauses.of(end.partition_id) is not None,
            )
            for end in ends
        },
        member_ids=_sharing_members(present, {o for o in owners.values() if o}, expiration),
    )


async def _pauses(
    store: CheckpointStore, group: ConsumerGroup, present: MembershipSnapshot
) -> Pauses:
    """Return what is paused. As in a processor, an unreadable record pauses everything."""
    if PAUSES_RECORD not in present.record_etags:
        return NO_PAUSES
    record = await store.read_record(group, PAUSES_RECORD)
    try:
        return pauses_in(record.content) if record else NO_PAUSES
    except StoreCorruptError as error:
        return unreadable(error, present.as_of)


def _partition(
    end: PartitionProperties, handled: int | None, owner_id: str | None, *, is_paused: bool
) -> PartitionReading:
    last = end.last_enqueued_sequence_number
    # Of an empty partition the hub reports the newest event that it ever had.
    first = last + 1 if end.is_empty else end.beginning_sequence_number
    return PartitionReading(
        first=first, last=last, handled=handled, owner_id=owner_id, is_paused=is_paused
    )


def _sharing_members(
    present: MembershipSnapshot, owners: set[str], expiration: timedelta
) -> frozenset[str]:
    """Return the owners, and the members that may get a partition.

    A member on standby has no share until it replaces another one; a leaving one gives up its own.
    """
    status_by_id = {m.owner_id: m.status for m in live_members(present, owners, expiration)}
    leaving = {o for o, status in status_by_id.items() if status is MemberStatus.LEAVING}
    active = {o for o, status in status_by_id.items() if status is MemberStatus.ACTIVE}
    return frozenset((owners | active) - leaving)
