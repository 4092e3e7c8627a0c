"""What a view of a group is made of: the records of the store, and the ends of the partitions.

Nothing in this module writes, claims a partition or opens a receiver.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from eventproc._base.tasks import in_parts
from eventproc._core.delivery.checkpoints import pump_owner
from eventproc._core.ownership.pauses import NO_PAUSES, Pauses
from eventproc._core.placement.published_plan import PLAN_RECORD, PublishedPlan, plan_in
from eventproc._group.records import pauses_in_force
from eventproc.errors import StoreCorruptError
from eventproc.models import (
    Checkpoint,
    ConsumerGroup,
    MembershipSnapshot,
    OwnershipSnapshot,
    PartitionProperties,
)
from eventproc.ports import CheckpointStore, EventSource

SOUND_FOR_S: Final = 60.0
"""A checkpoint that the partition's owner wrote within this time is not checked for damage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What was read from the store, and from the hub if it was asked."""

    owned: OwnershipSnapshot
    present: MembershipSnapshot
    checkpoints: Sequence[Checkpoint]
    ends: Mapping[str, PartitionProperties]
    """By partition id; empty if the hub was not asked."""

    old_ends: Collection[str] = ()
    """The partitions whose end is that of an earlier reading: they may have more events by now."""

    hub_created_at: datetime | None = None
    """When the hub was created, if it was asked and says so."""

    damage: Mapping[str, str]
    """Errors of the checkpoints that cannot be read, by partition id."""

    published: PublishedPlan | None = None
    plan_error: str | None = None
    """Why the published plan cannot be read."""

    pauses: Pauses = NO_PAUSES
    """What an operator paused; the whole group if the record cannot be read."""


async def read_group(
    store: CheckpointStore,
    group: ConsumerGroup,
    source: EventSource | None,
    error_by_version: dict[tuple[str, str], str | None],
) -> Readings:
    """Read all that a view shows from the store, and from the hub if a source is given.

    Args:
        store: An open store.
        group: The group.
        source: An open source, or ``None`` to leave the hub out.
        error_by_version: A cache, empty at first: the error, if any, of each checkpoint that was
            checked, by partition id and ETag. Each version is read once.

    Raises:
        StoreUnavailableError: The store did not answer.
        SourceUnavailableError: The hub did not answer.
    """
    ends: dict[str, PartitionProperties] = {}
    hub_created_at: datetime | None = None
    present = await store.list_members(group)
    owned = await store.list_ownership(group)
    checkpoints = await store.list_checkpoints(group)
    damage = await _damage(store, group, owned, checkpoints, error_by_version)
    if source is not None:
        # Read after the checkpoints, so that no lag is negative.
        ids = await source.partition_ids()
        properties = await in_parts(source.partition_properties, ids)
        ends = {found.partition_id: found for found in properties}
        hub_created_at = source.created_at
    published, plan_error = await _published_plan(store, group)
    return Readings(
        owned=owned,
        present=present,
        checkpoints=checkpoints,
        ends=ends,
        hub_created_at=hub_created_at,
        damage=damage,
        published=published,
        plan_error=plan_error,
        pauses=await pauses_in_force(store, group, present),
    )


async def _published_plan(
    store: CheckpointStore, group: ConsumerGroup
) -> tuple[PublishedPlan | None, str | None]:
    """Return the published plan that is stored, and why it cannot be read."""
    try:
        record = await store.read_record(group, PLAN_RECORD)
        return plan_in(record.content) if record else None, None
    except StoreCorruptError as error:
        return None, str(error)


async def _damage(
    store: CheckpointStore,
    group: ConsumerGroup,
    owned: OwnershipSnapshot,
    checkpoints: Sequence[Checkpoint],
    error_by_version: dict[tuple[str, str], str | None],
) -> dict[str, str]:
    """Read the checkpoints that may be damaged, and return their errors by partition id.

    A listing has positions, but not states, so damage shows only when a checkpoint is read. One
    that the current owner wrote recently is sound: a damaged one is neither adopted nor written.
    Nor is one of an Azure SDK read while it moves: its processors neither read nor write states.
    """
    owners = {(o.partition_id, o.owner_id) for o in owned.ownerships}
    suspects = [
        c
        for c in checkpoints
        if age_s(c.last_modified, owned.as_of) > SOUND_FOR_S
        or (c.writer is not None and (c.partition_id, pump_owner(c.writer)) not in owners)
    ]

    async def check(checkpoint: Checkpoint) -> None:
        try:
            await store.read_checkpoint(group, checkpoint.partition_id)
        except StoreCorruptError as error:
            error_by_version[checkpoint.partition_id, checkpoint.etag] = str(error)
        else:
            error_by_version[checkpoint.partition_id, checkpoint.etag] = None

    current = {(c.partition_id, c.etag) for c in suspects}
    for version in error_by_version.keys() - current:
        del error_by_version[version]
    await in_parts(check, [c for c in suspects if (c.partition_id, c.etag) not in error_by_version])
    found = {c.partition_id: error_by_version[c.partition_id, c.etag] for c in suspects}
    return {partition_id: error for partition_id, error in found.items() if error is not None}


def age_s(then: datetime, now: datetime) -> float:
    """Return how old something was in seconds, at least 0."""
    return max(0.0, (now - then).total_seconds())
