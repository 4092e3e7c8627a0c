"""What an operator changes in a group, also while its processors run: checkpoints and pauses.

Pauses are one group record, which each processor reads again when it has changed. For a checkpoint:

Rule 1: first the checkpoint is written, with a writer name that marks an operator's move. From then
on every conditional write of the owner fails, and the owner finds out why.
Rule 2: then the ownership record is written again, unchanged, with the owner's own id. The owner
finds that another process changed its lease, stops its pump, claims the partition again, and begins
at the moved checkpoint. Any processor that renews conditionally does so.
Rule 3: if this process dies between the two writes, the checkpoint is moved, and the owner finds
out at its next checkpoint.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc._base.settings import check_settings
from eventproc._core.delivery.checkpoints import operators_writer
from eventproc._core.ownership.liveness import fresh_owners
from eventproc._core.ownership.pauses import NO_PAUSES, PAUSES_RECORD, Pause, Pauses, pauses_in
from eventproc.errors import ConfigurationError, EventProcError, StoreUnavailableError
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    ConsumerGroup,
    GroupRecord,
    OwnershipClaim,
    PartitionOwnership,
    SequenceRange,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

__all__ = [
    "CheckpointExistsError",
    "CheckpointMove",
    "CheckpointMoved",
    "Pause",
    "Pauses",
    "live_owners",
    "move_checkpoint",
    "pause_group",
    "read_pauses",
    "resume_group",
]

_ATTEMPTS: Final = 20
"""An attempt fails only if the owner wrote in between, at a checkpoint or a renewal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMove:
    """A new position for a partition's checkpoint."""

    partition_id: str
    offset: str
    sequence_number: int
    """Of the last event that counts as handled; -1, with offset -1: none."""

    state: bytes | None = b""
    """The new state; ``b""`` removes the stored one. ``None`` keeps it, marked as belonging to its
    former position."""

    completed: tuple[SequenceRange, ...] = ()
    """Ranges of events above the position that count as handled."""

    def __post_init__(self) -> None:
        """Refuse values that no checkpoint can have, with ``ValueError``."""
        check_settings(self)
        self.update(replaces=None, writer=operators_writer(""))

    def update(self, *, replaces: Checkpoint | None, writer: str) -> CheckpointUpdate:
        """Return the conditional write of this move."""
        return CheckpointUpdate(
            partition_id=self.partition_id,
            offset=self.offset,
            sequence_number=self.sequence_number,
            replaces=replaces,
            writer=writer,
            state=self.state,
            completed=self.completed,
            is_reset=True,
        )


class CheckpointExistsError(EventProcError):
    """A checkpoint was to be created, and the partition has one; it was not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMoved:
    """The result of ``move_checkpoint``."""

    checkpoint: Checkpoint
    notified_owner_id: str | None
    """The owner whose record was written again; ``None``: the partition has no live owner."""


async def move_checkpoint(
    store: CheckpointStore,
    group: ConsumerGroup,
    move: CheckpointMove,
    *,
    token: str,
    expiration: timedelta,
    replaces: bool = True,
) -> CheckpointMoved:
    """Move one checkpoint, forward or back, and have its owner begin there.

    Args:
        store: An open store.
        group: The consumer group of the checkpoint.
        move: The partition and its new position.
        token: Random text that names this move. Pass the same text when you call again after
            ``StoreUnavailableError``: a former call that took effect is then recognised.
        expiration: The group's ``ownership_expiration``; an older record has no live owner.
        replaces: ``False`` writes only if the partition has no checkpoint.

    Raises:
        CheckpointExistsError: the partition has a checkpoint, and *replaces* is ``False``.
        StoreRejectedError: the store refuses the write, or a read that it needs.
        StoreCorruptError: the stored checkpoint is damaged, and *move* keeps its state.
        StoreUnavailableError: the outcome is not known, or the owner wrote between each read and
            write. Calling again is safe.
    """
    checkpoint = await _write(store, group, move, operators_writer(token), replaces=replaces)
    owner_id = await _notify_owner(store, group, move.partition_id, expiration)
    return CheckpointMoved(checkpoint=checkpoint, notified_owner_id=owner_id)


async def _write(
    store: CheckpointStore,
    group: ConsumerGroup,
    move: CheckpointMove,
    writer: str,
    *,
    replaces: bool,
) -> Checkpoint:
    for _ in range(_ATTEMPTS):
        found = await _find(store, group, move)
        if found is not None and found.writer == writer:
            return found  # An earlier attempt took effect, although its answer was lost.
        if found is not None and not replaces:
            raise CheckpointExistsError(
                f"partition {move.partition_id!r} has a checkpoint now, at number "
                f"{found.sequence_number}: it was not replaced"
            )
        update = move.update(replaces=found, writer=writer)
        result = await store.update_checkpoint(group, update)
        if result.checkpoint is not None:
            return result.checkpoint
        if result.error is not None and result.error.is_final:
            raise result.error
    raise StoreUnavailableError(
        f"the checkpoint of partition {move.partition_id!r} could not be moved in {_ATTEMPTS} "
        "attempts: try again"
    )


async def _find(
    store: CheckpointStore, group: ConsumerGroup, move: CheckpointMove
) -> Checkpoint | None:
    """Return the checkpoint to replace.

    If the move replaces the state, a listing is enough, and works even if the state is damaged.
    """
    if move.state is not None:
        for checkpoint in await store.list_checkpoints(group):
            if checkpoint.partition_id == move.partition_id:
                return checkpoint
    return await store.read_checkpoint(group, move.partition_id)


async def _notify_owner(
    store: CheckpointStore, group: ConsumerGroup, partition_id: str, expiration: timedelta
) -> str | None:
    for _ in range(_ATTEMPTS):
        held = (await live_owners(store, group, expiration)).get(partition_id)
        if held is None:
            return None
        claim = OwnershipClaim(
            partition_id=partition_id,
            owner_id=held.owner_id,
            expected_etag=held.etag,
            epoch=held.epoch,
        )
        (result,) = await store.claim_ownership(group, [claim])
        if result.outcome is WriteOutcome.WON:
            return held.owner_id
        if result.error is not None and result.error.is_final:
            raise result.error
    raise StoreUnavailableError(
        f"the checkpoint of partition {partition_id!r} was moved, but its owner could not be "
        "notified: it finds out at its next checkpoint; try again to notify it now"
    )


async def live_owners(
    store: CheckpointStore, group: ConsumerGroup, expiration: timedelta
) -> dict[str, PartitionOwnership]:
    """Return the ownership records whose owner is alive, by partition id.

    An owner is alive if it renewed its lease in time.
    """
    owned = await store.list_ownership(group)
    live = fresh_owners(owned, expiration)
    return {p: held for p, held in owned.by_partition.items() if p in live}


# --- pauses --------------------------------------------------------------------------------------


async def read_pauses(store: CheckpointStore, group: ConsumerGroup) -> Pauses:
    """Return what is paused in a group.

    Raises:
        StoreCorruptError: the record is damaged, or a later version wrote it.
        StoreUnavailableError: no answer; try again.
    """
    record = await store.read_record(group, PAUSES_RECORD)
    return pauses_in(record.content) if record else NO_PAUSES


async def pause_group(
    store: CheckpointStore,
    group: ConsumerGroup,
    partition_ids: Collection[str] | None = None,
    *,
    reason: str,
    expiration: timedelta,
) -> Pauses:
    """Pause partitions of a group, or all of it, until ``resume_group``; return all its pauses.

    Each owner stops receiving from them at its next poll of the group; calls of the handler under
    way finish. The pause lasts over moves and restarts. Calling again is safe.

    Args:
        store: An open store.
        group: The consumer group.
        partition_ids: The partitions; ``None``: the whole group, also partitions that are added
            later.
        reason: Why, for everybody who looks at the group: 1 to 500 characters.
        expiration: The group's ``ownership_expiration``. It tells which processors of an Azure SDK
            are alive: a group with one is refused.

    Raises:
        ConfigurationError: the reason is empty or too long; *partition_ids* is empty; or the group
            is one of resources, or has processors of an Azure SDK, which would go on receiving.
        StoreCorruptError: the record is damaged: resume the whole group first.
        StoreRejectedError: the store refuses the write, or a read that it needs.
        StoreUnavailableError: the outcome is not known.
    """
    if group.is_of_resources:
        raise ConfigurationError(
            f"group {group.name!r} shares named resources: they are held and not received from, so "
            "there is nothing to pause; stop the processes that hold them"
        )
    present = await store.list_members(group)
    ours = {member.owner_id for member in present.members}
    owned = await live_owners(store, group, expiration)
    foreign = {o.owner_id for o in owned.values() if o.owner_id is not None} - ours
    if foreign:  # Or it has joined meanwhile: its member record is older than its leases.
        present = await store.list_members(group)
        foreign -= {member.owner_id for member in present.members}
    if foreign:
        raise ConfigurationError(
            f"{min(foreign)} is a processor of an Azure SDK: it would ignore a pause and go on "
            "receiving; stop such processors first"
        )
    return await _change_pauses(
        store, group, lambda pauses: pauses.paused(partition_ids, present.as_of, reason)
    )


async def resume_group(
    store: CheckpointStore, group: ConsumerGroup, partition_ids: Collection[str] | None = None
) -> Pauses:
    """End pauses of partitions, or all pauses of the group; return what is still paused.

    Args:
        store: An open store.
        group: The consumer group.
        partition_ids: The partitions; ``None``: everything that is paused, also if the record is
            damaged.

    Raises:
        ConfigurationError: the whole group is paused, and *partition_ids* names some of it; or
            *partition_ids* is empty.
        StoreCorruptError: the record is damaged, and *partition_ids* names some partitions.
        StoreRejectedError: the store refuses the write, or a read that it needs.
        StoreUnavailableError: the outcome is not known.
    """
    return await _change_pauses(
        store,
        group,
        lambda pauses: pauses.resumed(partition_ids),
        is_whole=partition_ids is None,
    )


async def _change_pauses(
    store: CheckpointStore,
    group: ConsumerGroup,
    change: Callable[[Pauses], Pauses],
    *,
    is_whole: bool = False,
) -> Pauses:
    """Replace the record by what *change* makes of it; read it again after a conflict.

    *is_whole*: the record is replaced whatever it has, so it need not be readable.
    """
    for _ in range(_ATTEMPTS):
        etag = (await store.list_members(group)).record_etags.get(PAUSES_RECORD)
        former = None
        if not is_whole and etag is not None:
            # One that another operator wrote since the listing makes the write fail, by its ETag.
            former = await read_pauses(store, group)
        wanted = change(former or NO_PAUSES)
        if wanted == former or (etag is None and wanted == NO_PAUSES):
            return wanted
        record = GroupRecord(name=PAUSES_RECORD, content=wanted.as_bytes(), etag=etag)
        result = await store.write_record(group, record)
        if result.outcome is WriteOutcome.WON:
            return wanted
        if result.error is not None and result.error.is_final:
            raise result.error
    raise StoreUnavailableError(
        f"the pauses of the group could not be written in {_ATTEMPTS} attempts: try again"
    )
