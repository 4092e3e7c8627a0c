"""An operator's hand on a group's checkpoints, while the group is at work or at rest.

Rule 1: the checkpoint is moved first, under a writer that marks an operator's move. From then on
every conditional write of the owner fails, and it knows why.
Rule 2: then the owner's record is touched: written again in the owner's own name. It finds that its
lease was changed by somebody else, drops what it holds, takes the partition up again, and begins at
the moved checkpoint. That holds for any processor that renews conditionally.
Rule 3: who dies between the two has moved the checkpoint; the owner learns it at its next write.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc.core.lease import is_fresh
from eventproc.core.progress import operators_writer
from eventproc.errors import StoreUnavailableError
from eventproc.membership import LeaseMode, MemberStatus
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    ConsumerGroup,
    OwnershipClaim,
    PartitionOwnership,
    SequenceRange,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

ATTEMPTS: Final = 20
"""Each loses only if the owner wrote in between: once in a checkpoint interval, or in a renewal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Where a partition's checkpoint shall stand."""

    partition_id: str
    offset: str
    sequence_number: int
    """Of the last event that counts as handled; -1, with offset -1: none does."""

    state: bytes | None = b""
    """``b""`` removes what belongs to another position; ``None`` leaves it, marked as such."""

    completed: tuple[SequenceRange, ...] = ()

    def __post_init__(self) -> None:
        """Refuse with ``ValueError`` what no checkpoint can say, before anything is written."""
        self.update(replaces=None, writer=operators_writer(""))

    def update(self, *, replaces: Checkpoint | None, writer: str) -> CheckpointUpdate:
        """The write that carries it out."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A checkpoint that was moved."""

    checkpoint: Checkpoint
    told_owner_id: str | None
    """Whose ownership record was touched; ``None`` where nobody live holds the partition."""


async def move_checkpoint(
    store: CheckpointStore,
    group: ConsumerGroup,
    move: Move,
    *,
    token: str,
    expiration: timedelta,
) -> Moved:
    """Move one checkpoint, forward or back, and have its owner begin there.

    Args:
        store: An open store.
        group: Whose checkpoint.
        move: Where to.
        token: Random text, for one operator's run: by it a write is recognised whose answer was
            lost.
        expiration: The group's; an owner that did not renew for so long need not be told.

    Raises:
        StoreUnavailableError: nobody knows what stands in the store now, or the owner wrote
            between every reading and writing. Doing it again is safe.
    """
    checkpoint = await _write(store, group, move, operators_writer(token))
    told = await _touch(store, group, move.partition_id, expiration)
    return Moved(checkpoint=checkpoint, told_owner_id=told)


async def _write(
    store: CheckpointStore, group: ConsumerGroup, move: Move, writer: str
) -> Checkpoint:
    for _ in range(ATTEMPTS):
        found = await _find(store, group, move)
        if found is not None and found.writer == writer:
            return found  # An earlier attempt took effect although no answer said so.
        update = move.update(replaces=found, writer=writer)
        result = await store.update_checkpoint(group, update)
        if result.checkpoint is not None:
            return result.checkpoint
    raise StoreUnavailableError(
        f"the checkpoint of partition {move.partition_id!r} could not be moved in {ATTEMPTS} "
        "attempts: try again"
    )


async def _find(store: CheckpointStore, group: ConsumerGroup, move: Move) -> Checkpoint | None:
    """What the move replaces; from a listing where that will do, which no damaged state hinders."""
    if move.state is not None:
        for checkpoint in await store.list_checkpoints(group):
            if checkpoint.partition_id == move.partition_id:
                return checkpoint
    return await store.read_checkpoint(group, move.partition_id)


async def _touch(
    store: CheckpointStore, group: ConsumerGroup, partition_id: str, expiration: timedelta
) -> str | None:
    for _ in range(ATTEMPTS):
        held = (await live_owners(store, group, expiration)).get(partition_id)
        if held is None:
            return None
        claim = OwnershipClaim(
            partition_id=partition_id, owner_id=held.owner_id, expected_etag=held.etag
        )
        (result,) = await store.claim_ownership(group, [claim])
        if result.outcome is WriteOutcome.WON:
            return held.owner_id
    raise StoreUnavailableError(
        f"the checkpoint of partition {partition_id!r} was moved, but its owner could not be told: "
        "it learns it at its next checkpoint; try again to have it learn it now"
    )


async def live_owners(
    store: CheckpointStore, group: ConsumerGroup, expiration: timedelta
) -> dict[str, PartitionOwnership]:
    """The records, by partition, of those who hold one and renewed in time what keeps it theirs."""
    present = await store.list_members(group)
    owned = await store.list_ownership(group)
    session_by_owner = {
        member.owner_id: member
        for member in present.members
        if member.lease_mode is LeaseMode.SESSION
    }

    def is_live(held: PartitionOwnership) -> bool:
        session = session_by_owner.get(held.owner_id or "")
        if session is None:
            return owned.as_of is None or is_fresh(
                held.last_modified, owned.as_of, owned.resolution, expiration
            )
        if session.status is MemberStatus.DEAD or session.last_modified is None:
            return False
        return present.as_of is None or is_fresh(
            session.last_modified, present.as_of, present.resolution, expiration
        )

    return {
        held.partition_id: held
        for held in owned.ownerships
        if held.owner_id is not None and is_live(held)
    }
