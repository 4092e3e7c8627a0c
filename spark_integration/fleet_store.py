"""A store that is made where it is opened.

A processor opens its store on a loop of its own; so a context manager that gives a store has to be
entered there, too, and not before.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from eventproc.errors import StoreUnavailableError
from eventproc.membership import Member, MemberResult, MembershipSnapshot
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore


class LateStore(CheckpointStore):
    """What a context manager gives, entered by ``open`` and left by ``close``. Opened once."""

    def __init__(self, manager: AbstractAsyncContextManager[CheckpointStore]) -> None:
        self._manager = manager
        self._stack = AsyncExitStack()
        self._given: CheckpointStore | None = None

    @property
    def _store(self) -> CheckpointStore:
        if self._given is None:
            raise StoreUnavailableError("the store is closed")
        return self._given

    async def open(self) -> None:
        """Enter."""
        self._given = await self._stack.enter_async_context(self._manager)

    async def close(self) -> None:
        """Leave."""
        self._given = None
        await self._stack.aclose()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Ask the store."""
        return await self._store.list_ownership(group)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Ask the store."""
        return await self._store.claim_ownership(group, claims)

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Ask the store."""
        return await self._store.list_members(group)

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Ask the store."""
        return await self._store.announce_member(group, member)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Ask the store."""
        return await self._store.withdraw_member(group, member)

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """Ask the store."""
        return await self._store.list_checkpoints(group)

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Ask the store."""
        return await self._store.read_checkpoint(group, partition_id)

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Ask the store."""
        return await self._store.update_checkpoint(group, update)
