"""How a run ends: it leaves the group, keeps its leases for the next start, or is displaced.

All of it within the shutdown time-out: what the store does not answer in time is left undone, and
the leases then expire.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar

from eventproc._core.ownership.cycle import Actions
from eventproc._group.balancer import Balancer
from eventproc._group.pumps.pumps import Pumps
from eventproc._runtime.cycles import JITTER
from eventproc._runtime.parts import MemberParts
from eventproc._runtime.renewals import Renewals
from eventproc._runtime.store_thread import StoreExecutor
from eventproc.errors import DuplicateOwnerError, StoreError
from eventproc.models import MemberStatus

_T = TypeVar("_T")

ANSWER_EXTRA_CYCLES: Final = 4
"""Within how many ``rebalance_interval`` after a poll a processor has acted on it."""

ANNOUNCEMENT_FRACTION: Final = 0.2
"""The part of the shutdown time-out for announcing the leave, before partitions are drained."""

WITHDRAWAL_FRACTION: Final = 0.1
"""The part of the shutdown time-out for two requests after they are drained: to read what is still
recorded as this processor's, and to delete the member record."""


class Leaving:
    """Ends the ownership half of a run and its pumps; what is open then, the run closes."""

    def __init__(
        self,
        parts: MemberParts,
        balancer: Balancer,
        pumps: Pumps[Any],
        renewals: Renewals,
        executor: StoreExecutor,
    ) -> None:
        self._config = parts.config
        self._store = parts.store
        self._balancer = balancer
        self._pumps = pumps
        self._renewals = renewals
        self._executor = executor

    @property
    def over_at_s(self) -> float:
        """The time of the loop by which a stop that begins now has to be over."""
        return asyncio.get_running_loop().time() + self._config.shutdown_timeout.total_seconds()

    @property
    def _announced_by_s(self) -> float:
        budget_s = self._config.shutdown_timeout.total_seconds() * ANNOUNCEMENT_FRACTION
        return asyncio.get_running_loop().time() + budget_s

    async def retreat(self) -> None:
        """Delete the member record after a start that failed, if the store answers."""
        await self._try_until(self._announced_by_s, self._balancer.membership.retreat())

    async def close_displaced(self, until_s: float) -> None:
        """Close the handlers; write no record and no checkpoint."""
        self._pumps.lose_all()
        await self._try_until(until_s, self._drop_leases())
        await self._drain(until_s, None)

    async def _drop_leases(self) -> None:
        """On the store's loop: drop all leases, and renew nothing more."""
        self._balancer.leases.lose_all()
        await self._renewals.cancel()

    async def keep_leases(self, until_s: float) -> None:
        """Drain, and keep the leases for the next start with this owner id."""
        await self._drain(until_s, None)
        # From now on the next start has a whole ``ownership_expiration``.
        await self._try_until(until_s, self._balancer.leases.renew_all())
        await self._try_until(until_s, self._balancer.membership.change_to(MemberStatus.RESTARTING))

    async def leave_group(
        self, names: Sequence[str], until_s: float, *, is_rebalancing: bool
    ) -> None:
        """Announce the leave, drain, hand over every partition, and delete the member record.

        Cycles decide the hand-overs: with the status *leaving*, everything that this processor
        owns is surplus.

        Args:
            names: The partitions or resources that exist.
            until_s: The time of the loop by which to return.
            is_rebalancing: Whether the newest cycle before this had something to change.
        """
        await self._try_until(
            self._announced_by_s, self._balancer.membership.change_to(MemberStatus.LEAVING)
        )
        now_s = asyncio.get_running_loop().time
        noticed_s = now_s() + self._drain_delay_s()
        actions = await self._cycle(names, self._announced_by_s)
        is_rebalancing |= actions is not None and actions.others_move
        if actions and actions.has_others and self._balancer.leases.held:
            await asyncio.sleep(min(noticed_s - now_s(), (until_s - now_s()) / 2))
            actions = await self._cycle(names, self._announced_by_s)
        elif is_rebalancing:
            await asyncio.sleep(min(self._late_hand_over_wait_s(), (until_s - now_s()) / 2))
        await self._drain(until_s, actions.moves.hand_overs if actions else {})
        while self._is_serving or await self._is_recorded(until_s):
            # What other members handed over meanwhile has no pump: a cycle transfers it at once.
            actions = await self._cycle(names, until_s)
            if actions and actions.is_balanced:
                break
            if actions is None or self._is_serving:
                return  # The record stays, so other members wait before they steal.
            interval_s = self._config.rebalance_interval.total_seconds()
            await asyncio.sleep(min(interval_s, until_s - now_s()))
        await self._try_until(until_s, self._balancer.membership.withdraw())

    @property
    def _is_serving(self) -> bool:
        """Whether a handler may still run, or a lease is still held."""
        return bool(self._pumps.running or self._balancer.leases.held)

    async def _is_recorded(self, until_s: float) -> bool:
        """Whether a record names this processor as an owner, or may do so."""
        return await self._try_until(until_s, self._balancer.leases.is_any_recorded()) is not False

    async def _cycle(self, names: Sequence[str], until_s: float) -> Actions | None:
        """Run a cycle without its hand-overs; return what was decided, if it could run."""
        cycle = self._balancer.cycle(names, (), self._pumps.running)
        done = await self._try_until(until_s, cycle)
        self._pumps.follow(self._balancer.pauses)
        return done.actions if done else None

    async def _drain(self, until_s: float, targets: Mapping[str, str | None] | None) -> None:
        drained_s = until_s - self._config.shutdown_timeout.total_seconds() * WITHDRAWAL_FRACTION
        with suppress(TimeoutError):
            async with asyncio.timeout_at(drained_s):
                left_s = drained_s - asyncio.get_running_loop().time()
                await self._pumps.drain(
                    self._balancer.leases.held, targets, timedelta(seconds=left_s)
                )

    async def _try_until(self, until_s: float, work: Coroutine[object, object, _T]) -> _T | None:
        """On the store's loop: run the coroutine, and return its result.

        ``None`` if the store fails, the time is over, or another processor has this owner id.
        """
        with suppress(StoreError, TimeoutError, DuplicateOwnerError):
            async with asyncio.timeout_at(until_s):
                return await self._executor.call(work)
        return None

    def _drain_delay_s(self) -> float:
        config = self._config
        delay = config.drain_delay
        if delay is None:
            told = self._store.tells_changes
            interval = config.rebalance_interval if told else config.load_balancing_interval
            delay = min(interval * (1 + JITTER), config.shutdown_timeout / 3)
        return delay.total_seconds()

    def _late_hand_over_wait_s(self) -> float:
        """Return for how long another member may still hand a partition over to this processor.

        A member that has one to hand over polls after each ``rebalance_interval``, and then sees
        that this processor leaves.
        """
        return (self._config.rebalance_interval * ANSWER_EXTRA_CYCLES).total_seconds()
