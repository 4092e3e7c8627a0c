"""The connection of one processor to the store: adds latency, reports calls, ends with a crash.

A crash is simulated by silence: no call to the store and no call of a handler returns after it.
To the other processors that looks the same as a process that has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import TypeVar

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

T = TypeVar("T")


class StoreConnection(CheckpointStore):
    """Wraps the store of one processor."""

    def __init__(
        self,
        store: CheckpointStore,
        owner_id: str,
        *,
        observer: Observer,
        latency: timedelta,
        rng: Random,
    ) -> None:
        self._store = store
        self._owner_id = owner_id
        self._observer = observer
        self._way_s = latency.total_seconds() / 2
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._revived: asyncio.Event | None = None

    def cut(self) -> None:
        """Simulate a crash of the processor."""
        self._revived = asyncio.Event()

    def release(self) -> None:
        """Let the calls that a crash stopped return, once the simulation is over."""
        if self._revived is not None:
            self._revived.set()

    async def alive(self) -> None:
        """Return at once; if the processor has crashed, not before ``release``."""
        while self._revived is not None and not self._revived.is_set():
            # A crashed process does not react to a time-out either: it would repeat the call.
            with suppress(asyncio.CancelledError):
                await self._revived.wait()

    async def open(self) -> None:
        """Open the wrapped store."""
        await self._store.open()

    async def close(self) -> None:
        """Close the wrapped store."""
        await self._store.close()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Call the wrapped store and report the call to the observer."""
        await self._way()
        snapshot = await self._store.list_ownership(group)
        self._observer.listed(self._loop.time(), self._owner_id, is_ownership=True)
        await self._way()
        return snapshot

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Call the wrapped store and report the call to the observer."""
        await self._way()
        snapshot = await self._store.list_members(group)
        self._observer.listed(self._loop.time(), self._owner_id, is_ownership=False)
        await self._way()
        return snapshot

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Make all claims in one call of the wrapped store; report the results to the observer."""
        await self._way()
        results = await self._store.claim_ownership(group, claims)
        self._observer.claimed(self._loop.time(), self._owner_id, results)
        await self._way()
        return results

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Call the wrapped store and report the write to the observer."""
        return await self._write(lambda: self._store.announce_member(group, member))

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Call the wrapped store and report the write to the observer."""
        return await self._write(lambda: self._store.withdraw_member(group, member))

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """Call the wrapped store and count a checkpoint operation."""
        return await self._pass(lambda: self._store.list_checkpoints(group))

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Call the wrapped store and count a checkpoint operation."""
        return await self._pass(lambda: self._store.read_checkpoint(group, partition_id))

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Call the wrapped store and count a checkpoint operation."""
        return await self._pass(lambda: self._store.update_checkpoint(group, update))

    async def _write(self, call: Callable[[], Awaitable[T]]) -> T:
        await self._way()
        answer = await call()
        self._observer.wrote(self._loop.time(), 1)
        await self._way()
        return answer

    async def _pass(self, call: Callable[[], Awaitable[T]]) -> T:
        await self._way()
        answer = await call()
        self._observer.asked_for_checkpoints(self._loop.time())
        await self._way()
        return answer

    async def _way(self) -> None:
        """Wait for the latency of one direction: to the store, or back from it."""
        await asyncio.sleep(self._way_s * self._rng.uniform(0.5, 1.5))
        await self.alive()
