"""The store whose writes the invariants check, and a process's connection to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import TypeVar

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._simulation.store import StoreConnection
from eventproc.models import (
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberResult,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.testing._processes import Wire
from tests.simulation.actor import Actor
from tests.simulation.invariants import Invariants

T = TypeVar("T")


class CheckedStore(MemoryCheckpointStore):
    """The store itself, which reports every write that takes effect. It never waits."""

    def __init__(self, account: MemoryAccount, actor: Actor, invariants: Invariants) -> None:
        super().__init__(account)
        self.actor = actor
        self.invariants = invariants

    @asynccontextmanager
    async def _records(self, group: ConsumerGroup):
        yield self.account.records(group)

    def show(self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]) -> None:
        """Report requested claims and the current records to the invariants."""
        records = self.account.records(group)
        self.invariants.asked(self.actor, claims, records.ownership_by_partition)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Report the write to the invariants; a connection sends one claim at a time."""
        (claim,) = claims
        ownerships = self.account.records(group).ownership_by_partition
        before = ownerships.get(claim.partition_id)
        was_live = before is not None and self.invariants.is_live(before)
        result = self._claim(ownerships, claim)
        if result.outcome is WriteOutcome.WON and result.ownership is not None:
            self.invariants.owned(self.actor, before, result.ownership, was_live=was_live)
        return [result]

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Report the write to the invariants."""
        result = await super().announce_member(group, member)
        if result.member is not None:
            self.invariants.announced(self.actor, result.member)
        return result

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Report the write to the invariants."""
        result = await super().update_checkpoint(group, update)
        if result.outcome is WriteOutcome.WON:
            self.invariants.checkpointed(self.actor, update)
        return result


class CheckedConnection(StoreConnection):
    """The faulty connection of one processor to the store; each claim is a request of its own."""

    def __init__(self, store: CheckedStore, rng: Random, wire: Wire) -> None:
        super().__init__(store, rng, wire)
        self._checked = store
        self.actor = store.actor
        self._faulty_count = 0
        self._faulty_until_s = float("-inf")

    @property
    def faulty_until_s(self) -> float:
        """Until when a request was under way that a situation delays or loses: perhaps still."""
        return self._wire.loop.now_s if self._faulty_count else self._faulty_until_s

    async def _attempt(self, call: Callable[[], Awaitable[T]]) -> tuple[T] | None:
        is_faulty = self.fate is not None
        self._faulty_count += is_faulty
        try:
            return await super()._attempt(call)
        finally:
            self._faulty_count -= is_faulty
            if is_faulty:
                self._faulty_until_s = self._wire.loop.now_s

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Report a poll to the invariants."""
        self._checked.invariants.polled(self.actor)
        return await super().list_ownership(group)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Report the claims to the invariants before they are sent."""
        self._checked.show(group, claims)
        if len(claims) == 1:
            return [await self._claim_one(group, claims[0])]
        return await asyncio.gather(*[self._claim_one(group, claim) for claim in claims])

    async def _claim_one(self, group: ConsumerGroup, claim: OwnershipClaim) -> ClaimResult:
        (result,) = await super().claim_ownership(group, [claim])
        if result.outcome is WriteOutcome.UNKNOWN:
            self.actor.unanswered.add(claim.partition_id)
        return result

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        """Report the answer to the invariants."""
        record = await super().read_record(group, name)
        self._checked.invariants.record_read(self.actor, record)
        return record

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Report to the invariants that a checkpoint is sent, and that it was answered."""
        invariants = self._checked.invariants
        invariants.sent(self.actor, update)
        try:
            return await super().update_checkpoint(group, update)
        finally:
            invariants.answered(update)
