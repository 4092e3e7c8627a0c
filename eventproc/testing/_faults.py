"""Fault injection for a checkpoint store, reproducible by seed."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Annotated, Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from eventproc._base.settings import Span, Within, check_settings
from eventproc.errors import ConfigurationError, StoreUnavailableError
from eventproc.models import (
    ClaimResult,
    ConsumerGroup,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
)
from eventproc.ports import CheckpointStore, ForwardingStore

P = ParamSpec("P")
T = TypeVar("T")
Snapshot = TypeVar("Snapshot", OwnershipSnapshot, MembershipSnapshot)

LISTINGS_KEPT: Final = 64
"""How many past listings are kept, to choose a stale one from."""


Chance: TypeAlias = Annotated[float, Within(least=0, most=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFaults:
    """The faults of a store. Rates are probabilities for each call, between 0 and 1."""

    delay_max: Span = timedelta(0)
    """Longest delay of a call, at most half of it before it is carried out and half after."""

    delay_min: Span = timedelta(0)
    """Shortest delay of a call, half of it before it is carried out and half after."""

    throttle_rate: Chance = 0.0
    """The call is refused at once and not executed, as by a busy server."""

    request_lost_rate: Chance = 0.0
    """The call is not executed, and no answer arrives."""

    answer_lost_rate: Chance = 0.0
    """The call is executed, but no answer arrives."""

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
    """The faults and delays that are drawn for one call."""

    way_there_s: float
    way_back_s: float
    is_carried_out: bool
    is_answered: bool
    silence_s: float
    """How long the caller waits if no answer arrives."""


class FaultyCheckpointStore(ForwardingStore):
    """Wraps a store and makes it slow, busy, unreachable or silent.

    With default faults it changes nothing. Every call draws the same number of random values, so
    one seed gives one history as long as the order of calls is the same.
    """

    def __init__(
        self, store: CheckpointStore, rng: Random, faults: StoreFaults | None = None
    ) -> None:
        """Wrap *store*. The attribute ``faults`` may be replaced at any time."""
        super().__init__(store)
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

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the wrapped store with drawn faults; no answer is a ``StoreUnavailableError``.

        Opening and closing have no faults.
        """
        forward_now = super().forward
        answer = await self._attempt(lambda: forward_now(method, *args, **options))
        if answer is None:
            raise StoreUnavailableError("no answer (a fault injected on purpose)")
        return answer[0]

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """Call the wrapped store; the listing may be stale."""
        return self._aged(await super().list_ownership(group), self._owned)

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        """Call the wrapped store; the listing may be stale."""
        return self._aged(await super().list_members(group), self._present)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        """Call the wrapped store for each claim separately; faults are drawn for each."""
        results = await asyncio.gather(*(self._claim(group, claim) for claim in claims))
        return [result for (result,) in results]

    def _claim(
        self, group: ConsumerGroup, claim: OwnershipClaim
    ) -> Coroutine[Any, Any, Sequence[ClaimResult]]:
        return super().claim_ownership(group, [claim])

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

    def _draw_fate(self) -> Fate:
        """Draw the faults of the next call; always draws the same number of random values."""
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
        """Make the call with drawn faults; return ``None`` if no answer arrives."""
        fate = self._draw_fate()
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
