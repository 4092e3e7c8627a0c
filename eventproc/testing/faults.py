"""A store that misbehaves on purpose, the same way for the same seed."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Final, TypeVar

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
Snapshot = TypeVar("Snapshot", OwnershipSnapshot, MembershipSnapshot)

LISTINGS_KEPT: Final = 64
"""From which a stale one is chosen."""


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

    stale_rate: float = 0.0
    """A listing of ownership or members shows what an earlier one through this store showed, as
    from a replica that lags, but under the time of now. Writes are judged by what is."""

    stale_max: timedelta = timedelta(0)
    """How old what it shows may be."""

    def __post_init__(self) -> None:
        """Refuse what is no chance."""
        rates = (self.throttle_rate, self.request_lost_rate, self.answer_lost_rate)
        if min(rates) < 0 or sum(rates) > 1:
            raise ConfigurationError(f"the rates {rates} must not be below 0 nor above 1 together")
        if not 0 <= self.stale_rate <= 1:
            raise ConfigurationError(f"stale_rate is {self.stale_rate}: give a chance, 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of one call."""

    way_there_s: float
    way_back_s: float
    is_carried_out: bool
    is_answered: bool
    silence_s: float
    """How long the caller waits where no answer comes."""


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
        self._owned: deque[tuple[float, OwnershipSnapshot]] = deque(maxlen=LISTINGS_KEPT)
        self._present: deque[tuple[float, MembershipSnapshot]] = deque(maxlen=LISTINGS_KEPT)

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
        newest = await self._read(lambda: self.store.list_ownership(group))
        return self._aged(newest, self._owned)

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """As the store behind, or no answer."""
        newest = await self._read(lambda: self.store.list_members(group))
        return self._aged(newest, self._present)

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

    def _aged(self, newest: Snapshot, shown: deque[tuple[float, Snapshot]]) -> Snapshot:
        """Return the newest listing, or one that was shown before."""
        faults = self.faults
        if not faults.stale_rate:
            return newest
        now_s = asyncio.get_running_loop().time()
        shown.append((now_s, newest))
        if self._rng.random() >= faults.stale_rate:
            return newest
        oldest_s = now_s - faults.stale_max.total_seconds()
        stale = self._rng.choice([snapshot for at_s, snapshot in shown if at_s >= oldest_s])
        return replace(stale, as_of=newest.as_of)

    def draw_fate(self) -> Fate:
        """Draw what becomes of the next call: always as many chances, whatever comes of them."""
        faults, chance = self.faults, self._rng.random()
        half_s = faults.delay_max.total_seconds() / 2
        way_there_s, way_back_s = self._rng.random() * half_s, self._rng.random() * half_s
        is_throttled = chance < faults.throttle_rate
        chance -= faults.throttle_rate
        is_request_lost = not is_throttled and chance < faults.request_lost_rate
        chance -= faults.request_lost_rate
        return Fate(
            way_there_s=way_there_s,
            way_back_s=way_back_s,
            is_carried_out=not is_throttled and not is_request_lost,
            is_answered=not is_throttled
            and not is_request_lost
            and chance >= faults.answer_lost_rate,
            silence_s=0.0 if is_throttled else faults.silence.total_seconds(),
        )

    async def _attempt(self, call: Callable[[], Awaitable[T]]) -> tuple[T] | None:
        """Let the call meet its fate; ``None``: the caller gets no answer."""
        fate = self.draw_fate()
        await asyncio.sleep(fate.way_there_s)
        answer: tuple[T] | None = None
        if fate.is_carried_out and not self.is_out:
            answer = (await call(),)
            await asyncio.sleep(fate.way_back_s)
        # An outage that began meanwhile swallows the answer too.
        if fate.is_answered and not self.is_out:
            return answer
        await asyncio.sleep(fate.silence_s)
        return None
