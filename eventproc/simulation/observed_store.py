"""The store of a simulated processor; reports every call that arrives to the observer."""

from collections.abc import Callable, Sequence

from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    Member,
    MemberResult,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from eventproc.simulation.observer import Observer


class ObservedStore(CheckpointStore):
    """Wraps the store of one processor."""

    def __init__(
        self,
        store: CheckpointStore,
        owner_id: str,
        *,
        observer: Observer,
        now_s: Callable[[], float],
    ) -> None:
        self._store = store
        self._owner_id = owner_id
        self._observer = observer
        self._now_s = now_s

    async def open(self) -> None:
        """Open the wrapped store."""
        await self._store.open()

    async def close(self) -> None:
        """Close the wrapped store."""
        await self._store.close()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Report a listing of ownership records."""
        self._observer.listed(self._now_s(), self._owner_id, is_ownership=True)
        return await self._store.list_ownership(group)

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Report a listing of member records."""
        self._observer.listed(self._now_s(), self._owner_id, is_ownership=False)
        return await self._store.list_members(group)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Report the results of the claims."""
        results = await self._store.claim_ownership(group, claims)
        self._observer.claimed(self._now_s(), self._owner_id, results)
        return results

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Report a write."""
        self._observer.wrote(self._now_s(), 1)
        return await self._store.announce_member(group, member)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Report a write."""
        self._observer.wrote(self._now_s(), 1)
        return await self._store.withdraw_member(group, member)

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """Report a checkpoint operation."""
        self._observer.asked_for_checkpoints(self._now_s())
        return await self._store.list_checkpoints(group)

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Report a checkpoint operation."""
        self._observer.asked_for_checkpoints(self._now_s())
        return await self._store.read_checkpoint(group, partition_id)

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Report a checkpoint operation."""
        self._observer.asked_for_checkpoints(self._now_s())
        return await self._store.update_checkpoint(group, update)
