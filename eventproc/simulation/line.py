"""The line of one processor to the store: it takes time, it counts, and a crash cuts it.

A crash is simulated by silence: whatever the processor asks for, or handles, from then on never
comes to an end. For everybody else that is the same as if it were gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import TypeVar

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
from eventproc.simulation.observer import Observer

T = TypeVar("T")


class Line(CheckpointStore):
    """Stands in front of the store of one processor."""

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
        """The processor crashes."""
        self._revived = asyncio.Event()

    def mend(self) -> None:
        """The world is over: let what hangs run to its end."""
        if self._revived is not None:
            self._revived.set()

    async def alive(self) -> None:
        """Return at once, or never if the processor has crashed."""
        while self._revived is not None and not self._revived.is_set():
            # The dead do not react to a time-out either: a call that ended would be made again.
            with suppress(asyncio.CancelledError):
                await self._revived.wait()

    async def open(self) -> None:
        """Open the store behind."""
        await self._store.open()

    async def close(self) -> None:
        """Close the store behind."""
        await self._store.close()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """As the store behind, seen by the observer."""
        await self._way()
        snapshot = await self._store.list_ownership(group)
        self._observer.listed(self._loop.time(), self._owner_id, is_look=True)
        await self._way()
        return snapshot

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """As the store behind, seen by the observer."""
        await self._way()
        snapshot = await self._store.list_members(group)
        self._observer.listed(self._loop.time(), self._owner_id, is_look=False)
        await self._way()
        return snapshot

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """As the store behind, seen by the observer; all at once."""
        await self._way()
        results = await self._store.claim_ownership(group, claims)
        self._observer.claimed(self._loop.time(), self._owner_id, results)
        await self._way()
        return results

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """As the store behind, seen by the observer."""
        return await self._write(lambda: self._store.announce_member(group, member))

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """As the store behind, seen by the observer."""
        return await self._write(lambda: self._store.withdraw_member(group, member))

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """As the store behind."""
        return await self._pass(lambda: self._store.list_checkpoints(group))

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """As the store behind."""
        return await self._pass(lambda: self._store.read_checkpoint(group, partition_id))

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """As the store behind."""
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
        """To the store, or back from it."""
        await asyncio.sleep(self._way_s * self._rng.uniform(0.5, 1.5))
        await self.alive()
