"""The faulty connection of a processor to the store, and the store that the invariants check.

A request is carried out when it arrives, even if its sender is paused, killed or gone by then. The
answer waits until the sender runs again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc.models import (
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    Member,
    MemberResult,
    MemberStatus,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.testing import FaultyCheckpointStore
from eventproc.testing.faults import Fate
from eventproc.testing.processes import Wire
from tests.simulation.actor import Actor
from tests.simulation.invariants import Invariants

T = TypeVar("T")


class StoreConnection(FaultyCheckpointStore):
    """The faulty connection of one processor to the store; reports every request."""

    def __init__(self, ledger: "Ledger", rng: Random, wire: Wire) -> None:
        super().__init__(ledger, rng)
        self._ledger = ledger
        self._wire = wire
        self.actor = ledger.actor

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Report a poll to the invariants."""
        self._ledger.invariants.polled(self.actor)
        return await super().list_ownership(group)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Report the claims to the invariants before they are sent."""
        self._ledger.show(group, claims)
        if len(claims) == 1:
            return await self._claim(group, claims[0])
        return await super().claim_ownership(group, claims)

    async def _attempt(self, call: Callable[[], Awaitable[T]]) -> tuple[T] | None:
        fate = self.draw_fate()
        answered: asyncio.Future[tuple[T] | None] = asyncio.get_running_loop().create_future()
        self._wire.after(fate.way_there_s, self._arrive, call, fate, answered)
        return await answered

    def _arrive(
        self, call: Callable[[], Awaitable[T]], fate: Fate, answered: asyncio.Future
    ) -> None:
        if fate.is_carried_out and not self.is_out:
            answer = (_result(call()),)
            self._wire.after(fate.way_back_s, self._come_back, answer, fate, answered)
        else:
            self._wire.after(fate.silence_s, _answer, answered, None)

    def _come_back(self, answer: tuple[T], fate: Fate, answered: asyncio.Future) -> None:
        # An outage that began during the call loses its answer, too.
        if fate.is_answered and not self.is_out:
            _answer(answered, answer)
        else:
            self._wire.after(fate.silence_s, _answer, answered, None)


def _answer(answered: asyncio.Future, answer: tuple[T] | None) -> None:
    if not answered.done():
        answered.set_result(answer)


def _result(answer: Awaitable[T]) -> T:
    """Run a coroutine that must not wait; return its result."""
    try:
        next(answer.__await__())
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("the ledger must not wait")


class Ledger(MemoryCheckpointStore):
    """The store itself, which reports every write that takes effect. It never waits."""

    def __init__(self, account: MemoryAccount, actor: Actor, invariants: Invariants) -> None:
        super().__init__(account)
        self.actor = actor
        self.invariants = invariants

    async def _records(self, group: ConsumerGroup):
        return self.account.records(group)

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
        """Report to the invariants that a member was fenced."""
        result = await super().announce_member(group, member)
        if member.status is MemberStatus.DEAD and result.outcome is WriteOutcome.WON:
            stored = self.account.records(group).ownership_by_partition
            self.invariants.processor_fenced(member.owner_id, stored)
        return result

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Report the write to the invariants."""
        result = await super().update_checkpoint(group, update)
        if result.outcome is WriteOutcome.WON:
            self.invariants.checkpointed(self.actor, update)
        return result
