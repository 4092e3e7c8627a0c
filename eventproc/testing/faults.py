"""A store that misbehaves on purpose, the same way for the same seed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TypeVar

from eventproc.errors import ConfigurationError, StoreUnavailableError
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

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFaults:
    """How badly a store behaves. The rates are chances for each call, between 0 and 1."""

    delay_max: timedelta = timedelta(0)
    """A call takes any time up to this, half of it before it acts and half before it answers."""

    throttle_rate: float = 0.0
    """Refused at once and surely not carried out, as by a server that is busy."""

    request_lost_rate: float = 0.0
    """Never carried out, and the caller is not told."""

    answer_lost_rate: float = 0.0
    """Carried out, and the caller is not told."""

    silence: timedelta = timedelta(0)
    """How long a caller waits for an answer that does not come."""

    def __post_init__(self) -> None:
        """Refuse what is no chance."""
        rates = (self.throttle_rate, self.request_lost_rate, self.answer_lost_rate)
        if min(rates) < 0 or sum(rates) > 1:
            raise ConfigurationError(f"the rates {rates} must not be below 0 nor above 1 together")


class FaultyCheckpointStore(CheckpointStore):
    """Stands in front of a store and lets it seem slow, busy, gone, or lost in thought.

    With default faults it changes nothing. It draws the same number of chances for every call,
    so one seed gives one history as long as the calls come in one order.
    """

    def __init__(
        self, store: CheckpointStore, rng: Random, faults: StoreFaults | None = None
    ) -> None:
        """*faults* may be exchanged at any time by setting the attribute."""
        self.store = store
        self.faults = faults or StoreFaults()
        self.is_out = False
        """True during an outage: no call is carried out."""

        self._rng = rng

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Nothing reaches the store for as long as the block lasts."""
        self.is_out = True
        try:
            yield
        finally:
            self.is_out = False

    async def open(self) -> None:
        """Open the store behind; faults begin with the first call."""
        await self.store.open()

    async def close(self) -> None:
        """Close the store behind."""
        await self.store.close()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """As the store behind, or no answer."""
        return await self._read(lambda: self.store.list_ownership(group))

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """As the store behind, or no answer."""
        return await self._read(lambda: self.store.list_members(group))

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """As the store behind, or no answer."""
        return await self._read(lambda: self.store.list_checkpoints(group))

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """As the store behind, or no answer."""
        return await self._read(lambda: self.store.read_checkpoint(group, partition_id))

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """As the store behind; each claim meets a fate of its own."""
        return await asyncio.gather(*(self._claim(group, claim) for claim in claims))

    async def _claim(self, group: ConsumerGroup, claim: OwnershipClaim) -> ClaimResult:
        answer = await self._attempt(lambda: self.store.claim_ownership(group, [claim]))
        return answer[0][0] if answer else ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN)

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """As the store behind, or unknown."""
        answer = await self._attempt(lambda: self.store.announce_member(group, member))
        return answer[0] if answer else MemberResult(outcome=WriteOutcome.UNKNOWN)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """As the store behind, or unknown."""
        answer = await self._attempt(lambda: self.store.withdraw_member(group, member))
        return answer[0] if answer else WriteOutcome.UNKNOWN

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """As the store behind, or unknown."""
        answer = await self._attempt(lambda: self.store.update_checkpoint(group, update))
        return answer[0] if answer else CheckpointResult(outcome=WriteOutcome.UNKNOWN)

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        answer = await self._attempt(call)
        if answer is None:
            raise StoreUnavailableError("no answer (a fault injected on purpose)")
        return answer[0]

    async def _attempt(self, call: Callable[[], Awaitable[T]]) -> tuple[T] | None:
        """Let the call meet its fate; ``None``: the caller gets no answer."""
        faults = self.faults
        fate = self._rng.random()
        way_there = self._rng.random() * faults.delay_max / 2
        way_back = self._rng.random() * faults.delay_max / 2
        await asyncio.sleep(way_there.total_seconds())
        if self.is_out:
            await asyncio.sleep(faults.silence.total_seconds())
            return None
        if fate < faults.throttle_rate:
            return None
        fate -= faults.throttle_rate
        if fate < faults.request_lost_rate:
            await asyncio.sleep(faults.silence.total_seconds())
            return None
        fate -= faults.request_lost_rate
        answer = (await call(),)
        await asyncio.sleep(way_back.total_seconds())
        # An outage that began meanwhile swallows the answer too.
        if fate < faults.answer_lost_rate or self.is_out:
            await asyncio.sleep(faults.silence.total_seconds())
            return None
        return answer
