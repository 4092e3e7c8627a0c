"""A checkpoint store that enters a context manager when it is opened.

A processor opens its store on the store thread's event loop, so a context manager that yields a
store has to be entered there, too.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from eventproc.errors import StoreUnavailableError
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


class LazyStore(CheckpointStore):
    """Delegates to the store that a context manager yields. Can be opened once."""

    def __init__(self, manager: AbstractAsyncContextManager[CheckpointStore]) -> None:
        self._manager = manager
        self._stack = AsyncExitStack()
        self._opened: CheckpointStore | None = None

    @property
    def _store(self) -> CheckpointStore:
        if self._opened is None:
            raise StoreUnavailableError("the store is closed")
        return self._opened

    async def open(self) -> None:
        """Enter the context manager."""
        self._opened = await self._stack.enter_async_context(self._manager)

    async def close(self) -> None:
        """Exit the context manager."""
        self._opened = None
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
