"""Fault injection for a checkpoint store, reproducible by seed."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Annotated, Final, TypeAlias, TypeVar

from eventproc.errors import ConfigurationError, StoreUnavailableError
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
from eventproc.settings import Span, Within, check_settings

T = TypeVar("T")
Snapshot = TypeVar("Snapshot", OwnershipSnapshot, MembershipSnapshot)

LISTINGS_KEPT: Final = 64
"""Past listings from which a stale one is chosen."""


Chance: TypeAlias = Annotated[float, Within(least=0, most=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFaults:
    """The faults of a store. Rates are probabilities for each call, between 0 and 1."""

    delay_max: Span = timedelta(0)
    """Longest delay of a call, at most half of it before it is carried out and half after."""

    delay_min: Span = timedelta(0)
    """Shortest delay of a call, half of it before it is carried out and half after."""

    throttle_rate: Chance = 0.0
    """Refused at once and not carried out, as by a busy server."""

    request_lost_rate: Chance = 0.0
    """Not carried out, and no answer arrives."""

    answer_lost_rate: Chance = 0.0
    """Carried out, but no answer arrives."""

    silence: Span = timedelta(0)
    """How long a caller waits for an answer that does not arrive."""

    stale_rate: Chance = 0.0
    """A listing of ownership or members repeats an earlier one of this object, but with the current
    ``as_of``, as from a lagging replica. Conditional writes use the current records."""

    stale_max: Span = timedelta(0)
    """Greatest age of a stale listing."""

    def __post_init__(self) -> None:
        """Check that the rates are probabilities, and the delays in order."""
        check_settings(self)
        if self.delay_min > self.delay_max:
            raise ConfigurationError(
                f"delay_min {self.delay_min} must not be above delay_max {self.delay_max}"
            )
        rates = (self.throttle_rate, self.request_lost_rate, self.answer_lost_rate)
        if sum(rates) > 1:
            raise ConfigurationError(f"the rates {rates} must not be above 1 together")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The fate of one call."""

    way_there_s: float
    way_back_s: float
    is_carried_out: bool
    is_answered: bool
    silence_s: float
    """How long the caller waits if no answer arrives."""


class FaultyCheckpointStore(CheckpointStore):
    """Wraps a store and makes it slow, busy, unreachable or silent.

    With default faults it changes nothing. Every call draws the same number of random values, so
    one seed gives one history as long as the order of calls is the same.
    """

    def __init__(
        self, store: CheckpointStore, rng: Random, faults: StoreFaults | None = None
    ) -> None:
        """Wrap *store*. The attribute ``faults`` may be replaced at any time."""
        self.store = store
        self.faults = faults or StoreFaults()
        self.is_out = False
        """True during an outage: no call is carried out."""

        self._rng = rng
        self._owned: deque[tuple[float, OwnershipSnapshot]] = deque(maxlen=LISTINGS_KEPT)
        self._present: deque[tuple[float, MembershipSnapshot]] = deque(maxlen=LISTINGS_KEPT)

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Make the store unreachable while the block runs."""
        self.is_out = True
        try:
            yield
        finally:
            self.is_out = False

    async def open(self) -> None:
        """Open the wrapped store. Opening has no faults."""
        await self.store.open()

    async def close(self) -> None:
        """Close the wrapped store."""
        await self.store.close()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Call the wrapped store; raise ``StoreUnavailableError`` if no answer arrives."""
        newest = await self._read(lambda: self.store.list_ownership(group))
        return self._aged(newest, self._owned)

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Call the wrapped store; raise ``StoreUnavailableError`` if no answer arrives."""
        newest = await self._read(lambda: self.store.list_members(group))
        return self._aged(newest, self._present)

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        """Call the wrapped store; raise ``StoreUnavailableError`` if no answer arrives."""
        return await self._read(lambda: self.store.list_checkpoints(group))

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Call the wrapped store; raise ``StoreUnavailableError`` if no answer arrives."""
        return await self._read(lambda: self.store.read_checkpoint(group, partition_id))

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Call the wrapped store for each claim separately; without an answer it is ``UNKNOWN``."""
        return await asyncio.gather(*(self._claim(group, claim) for claim in claims))

    async def _claim(self, group: ConsumerGroup, claim: OwnershipClaim) -> ClaimResult:
        answer = await self._attempt(lambda: self.store.claim_ownership(group, [claim]))
        return answer[0][0] if answer else ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN)

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        """Call the wrapped store; ``UNKNOWN`` if no answer arrives."""
        answer = await self._attempt(lambda: self.store.announce_member(group, member))
        return answer[0] if answer else MemberResult(outcome=WriteOutcome.UNKNOWN)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        """Call the wrapped store; ``UNKNOWN`` if no answer arrives."""
        answer = await self._attempt(lambda: self.store.withdraw_member(group, member))
        return answer[0] if answer else WriteOutcome.UNKNOWN

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Call the wrapped store; ``UNKNOWN`` if no answer arrives."""
        answer = await self._attempt(lambda: self.store.update_checkpoint(group, update))
        return answer[0] if answer else CheckpointResult(outcome=WriteOutcome.UNKNOWN)

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        answer = await self._attempt(call)
        if answer is None:
            raise StoreUnavailableError("no answer (a fault injected on purpose)")
        return answer[0]

    def _aged(self, newest: Snapshot, shown: deque[tuple[float, Snapshot]]) -> Snapshot:
        """Return the newest listing, or an earlier one."""
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
        """Draw the fate of the next call; always draws the same number of random values."""
        faults, chance = self.faults, self._rng.random()
        least_s = faults.delay_min.total_seconds() / 2
        span_s = faults.delay_max.total_seconds() / 2 - least_s
        way_there_s = least_s + self._rng.random() * span_s
        way_back_s = least_s + self._rng.random() * span_s
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
        """Make the call with a fate; return ``None`` if no answer arrives."""
        fate = self.draw_fate()
        await asyncio.sleep(fate.way_there_s)
        answer: tuple[T] | None = None
        if fate.is_carried_out and not self.is_out:
            answer = (await call(),)
            await asyncio.sleep(fate.way_back_s)
        # An outage that began during the call loses its answer, too.
        if fate.is_answered and not self.is_out:
            return answer
        await asyncio.sleep(fate.silence_s)
        return None
