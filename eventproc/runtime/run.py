"""One run of a processor, from start to stop: creates its parts, opens and closes them in order.

Usually two event loops take part. The store, the leases, the membership and the balancer run on the
store's loop; the source and the pumps on the processor's. Calls between them go through a
``StoreExecutor``. Methods marked "On the store's loop" run there.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final, Generic, TypeVar

from eventproc.concurrency.tasks import end, together
from eventproc.core.ownership.cycle import Actions
from eventproc.errors import (
    ConfigurationError,
    DuplicateOwnerError,
    StoreError,
    StoreRejectedError,
    StoreReplacedError,
)
from eventproc.models import MemberStatus
from eventproc.ownership.balancer import Balancer, CycleResult
from eventproc.ownership.compatibility import Compatibility
from eventproc.pumps.preparations import Preparations
from eventproc.pumps.pump import Grant, PumpT, Work
from eventproc.pumps.pumps import Pumps
from eventproc.retries import waits
from eventproc.runtime.closing import CloseStack
from eventproc.runtime.parts import MemberParts
from eventproc.runtime.roster_view import RosterView
from eventproc.runtime.store_thread import InlineExecutor, StoreExecutor, ThreadExecutor

_T = TypeVar("_T")

DISPLACING: Final = (DuplicateOwnerError, StoreReplacedError)
"""Errors that end a processor at once: another processor uses its owner id, or its store is not the
group's any more. It writes nothing after that."""

JITTER: Final = 0.1
"""The part of an interval by which cycles vary, so that processors do not read in step."""

ANSWER_INTERVALS: Final = 1.0 + 2 * JITTER
"""A live processor with the same ``owner_id`` polls the group within this many
``load_balancing_interval`` ..."""

ANSWER_EXTRA_CYCLES: Final = 4
"""... and answers within this many ``rebalance_interval`` after that."""

ANNOUNCEMENT_FRACTION: Final = 0.2
"""The part of the shutdown time-out for announcing the leave, before partitions are drained."""

WITHDRAWAL_FRACTION: Final = 0.1
"""The part of the shutdown time-out for two requests after they are drained: to read what is still
recorded as this processor's, and to delete the member record."""

CLOSE_GRACE_S: Final = 2.0
"""On top of the shutdown time-out: for source, store and dead letters to be closed. Less than the
``GRACE`` after which a process that got a signal is ended."""


def _boot_clock() -> float:
    """Return seconds of a clock that counts suspended time too: leases expire during it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ProcessorRun(Generic[PumpT]):
    """One run of a processor, from start to stop."""

    def __init__(
        self, parts: MemberParts, work: Work[PumpT], *, changed: Callable[[], None]
    ) -> None:
        """Create the parts, on the running loop; ``changed`` is called to ask for a cycle."""
        self._parts = parts
        self._work = work
        self._changed = changed
        self._config = parts.config
        self._open = CloseStack(parts.log)
        self.process_id = os.getpid()
        self._is_closed = False
        self._is_rebalancing = True
        self._renewal_task: asyncio.Task[None] | None = None
        self.names: tuple[str, ...] = ()
        """The partitions or resources that exist, as last read."""

        self.awaited = ""
        """What ``open`` waits for, in words for an operator."""

        owner_id, store, group = parts.member.owner_id, parts.store, parts.group
        has_thread = parts.config.uses_store_thread
        own_clock = _boot_clock if has_thread else asyncio.get_running_loop().time
        self._clock = parts.clock or own_clock
        self.executor: StoreExecutor
        if has_thread:
            self.executor = ThreadExecutor(f"eventproc-store-{owner_id}")
        else:
            self.executor = InlineExecutor()
        self._balancer = Balancer(
            store,
            group,
            parts.member,
            config=self._config,
            clock=self._clock,
            on_lost=self._on_lost,
            log=parts.log,
            patience=parts.roster.patience if parts.roster else None,
        )
        self._roster: RosterView | None = None
        if parts.roster is not None:
            self._roster = RosterView(parts.roster, owner_id, changed=changed, log=parts.log)
        self._compatibility = Compatibility(
            group=group,
            member=parts.member,
            placement=parts.config.placement,
            expiration=parts.config.ownership_expiration,
        )
        self._membership, self.leases = self._balancer.membership, self._balancer.leases
        wait_s = waits(self._config.handler_backoff, parts.rng)
        self.preparations = Preparations(work, wait_s, parts.log)
        self.pumps: Pumps[PumpT] = Pumps(
            self._make_pump,
            lambda p, to_owner_id: self.executor.call(self.leases.transfer(p, to_owner_id)),
            wait_s=wait_s,
            changed=changed,
            rng=parts.rng,
            log=parts.log,
        )

    async def open(self) -> None:
        """Open store and work, check the group, write the member record, and start renewals.

        On an error everything that was opened is closed again, the member record is deleted if the
        store answers, and nothing was claimed.
        """
        parts = self._parts
        try:
            self.awaited = "the store to answer"
            self._open.push("store_thread", self.executor.close)
            await self.executor.call(parts.store.open())
            self._open.push("store", lambda: self.executor.call(parts.store.close()))
            self.awaited = "the hub, or the sink of dead letters, to answer"
            await self._work.open(self._open)
            if self._roster is not None:
                self.awaited = "the roster to answer"
                await self._roster.open(self._open)
            self._open.push("preparations", self.preparations.close)
            self.awaited = "the list of partitions or resources"
            self.names = tuple(await self._work.names())
            answer_within = (
                self._config.load_balancing_interval * ANSWER_INTERVALS
                + self._config.rebalance_interval * ANSWER_EXTRA_CYCLES
            )
            self.awaited = (
                f"its entry into the group, up to {answer_within.total_seconds():.3g} s if the "
                "last process with its owner id did not leave"
            )
            await self.executor.call(
                self._membership.enter(
                    answer_within=answer_within,
                    poll_interval=self._config.rebalance_interval,
                    check=self._compatibility.check_records,
                )
            )
            await self.executor.call(self._compatibility.check(parts.store))
            self.renewing = asyncio.create_task(self.executor.call(self._renew()))
            self._open.push("renewals", self._stop_renewals)
        except BaseException as error:
            until_s = self._stopped_by_s()
            await self._try_until(self._announced_by_s(), self._membership.retreat())
            await self._open.close(until_s + CLOSE_GRACE_S)
            if isinstance(error, StoreRejectedError):
                raise ConfigurationError(str(error)) from error
            raise

    def _stopped_by_s(self) -> float:
        """Return the time of the loop by which a stop that begins now has to be over."""
        return asyncio.get_running_loop().time() + self._config.shutdown_timeout.total_seconds()

    async def _renew(self) -> None:
        """On the store's loop: renew the leases and watch the store; an error in one ends both."""
        self._renewal_task = asyncio.current_task()
        await together(self.leases.keep(), self._watch())

    async def _watch(self) -> None:
        """On the store's loop: ask for a cycle at each change that the store tells of."""
        parts = self._parts
        with suppress(StoreError):  # It is logged, and cycles are run periodically.
            await parts.store.watch(
                parts.group,
                parts.member.owner_id,
                lambda: self.executor.call_soon(self._changed),
            )

    async def _cancel_renewals(self) -> None:
        """On the store's loop: cancel the renewals, and return when none is under way."""
        if self._renewal_task is not None:
            await end([self._renewal_task])

    async def _drop_leases(self) -> None:
        """On the store's loop: drop all leases, and renew nothing more."""
        self.leases.lose_all()
        await self._cancel_renewals()

    async def _stop_renewals(self) -> None:
        """Cancel the renewals on the store's loop, then the task that waits for them here."""
        await self.executor.call(self._cancel_renewals())
        await end([self.renewing])

    async def close(self, *, is_displaced: bool = False) -> None:
        """Drain and hand over all partitions within the shutdown time-out, and close everything.

        Args:
            is_displaced: Whether one of ``DISPLACING`` ended the run: then no record is written.
        """
        if self._is_closed:
            return
        self._is_closed = True
        until_s = self._stopped_by_s()
        try:
            if is_displaced:
                await self._close_displaced(until_s)
            elif self._config.static_membership:
                await self._stop_keeping_leases(until_s)
            else:
                await self._leave_group(until_s)
        finally:
            await self._open.close(until_s + CLOSE_GRACE_S)

    async def _close_displaced(self, until_s: float) -> None:
        """Close the handlers; write no record and no checkpoint."""
        self.pumps.lose_all()
        await self._try_until(until_s, self._drop_leases())
        await self._drain(until_s, None)

    async def _leave_group(self, until_s: float) -> None:
        """Announce the leave, drain, hand over every partition, and delete the member record.

        Cycles decide the hand-overs: with the status *leaving*, everything that this processor
        owns is surplus.
        """
        await self._try_until(
            self._announced_by_s(), self._membership.change_to(MemberStatus.LEAVING)
        )
        now_s = asyncio.get_running_loop().time
        noticed_s = now_s() + self._drain_delay_s()
        actions = await self._leaving_cycle(self._announced_by_s())
        self._is_rebalancing |= actions is not None and actions.others_move
        if actions and actions.has_others and self.leases.held:
            await asyncio.sleep(noticed_s - now_s())
            actions = await self._leaving_cycle(self._announced_by_s())
        elif self._is_rebalancing:
            await asyncio.sleep(self._late_hand_over_wait_s())
        await self._drain(until_s, actions.moves.hand_overs if actions else {})
        while self._is_serving or await self._is_recorded(until_s):
            # What other members handed over meanwhile has no pump: a cycle transfers it at once.
            actions = await self._leaving_cycle(until_s)
            if actions and actions.is_balanced:
                break
            if actions is None or self._is_serving:
                return  # The record stays, so other members wait before they steal.
            interval_s = self._config.rebalance_interval.total_seconds()
            await asyncio.sleep(min(interval_s, until_s - now_s()))
        await self._try_until(until_s, self._membership.withdraw())

    @property
    def _is_serving(self) -> bool:
        """Whether a handler may still run, or a lease is still held."""
        return bool(self.pumps.running or self.leases.held)

    async def _is_recorded(self, until_s: float) -> bool:
        """Whether a record names this processor as an owner, or may do so."""
        return await self._try_until(until_s, self.leases.is_any_recorded()) is not False

    async def _leaving_cycle(self, until_s: float) -> Actions | None:
        """Run a cycle without its hand-overs; return what was decided, if it could run."""
        cycle = self._balancer.cycle(self.names, (), self.pumps.running)
        done = await self._try_until(until_s, cycle)
        self.pumps.follow(self._balancer.pauses)
        return done.actions if done else None

    async def _stop_keeping_leases(self, until_s: float) -> None:
        """Drain, and keep the leases for the next start with this owner id."""
        await self._drain(until_s, None)
        # From now on the next start has a whole ``ownership_expiration``.
        await self._try_until(until_s, self.leases.renew_all())
        await self._try_until(until_s, self._membership.change_to(MemberStatus.RESTARTING))

    async def _drain(self, until_s: float, targets: Mapping[str, str | None] | None) -> None:
        drained_s = until_s - self._config.shutdown_timeout.total_seconds() * WITHDRAWAL_FRACTION
        with suppress(TimeoutError):
            async with asyncio.timeout_at(drained_s):
                left_s = drained_s - asyncio.get_running_loop().time()
                await self.pumps.drain(self.leases.held, targets, timedelta(seconds=left_s))

    async def _try_until(self, until_s: float, work: Coroutine[object, object, _T]) -> _T | None:
        """On the store's loop: run the coroutine, and return its result.

        ``None`` if the store fails, the time is over, or another processor has this owner id.
        """
        with suppress(StoreError, TimeoutError, DuplicateOwnerError):
            async with asyncio.timeout_at(until_s):
                return await self.executor.call(work)
        return None

    def _announced_by_s(self) -> float:
        budget_s = self._config.shutdown_timeout.total_seconds() * ANNOUNCEMENT_FRACTION
        return asyncio.get_running_loop().time() + budget_s

    def _drain_delay_s(self) -> float:
        config = self._config
        delay = config.drain_delay
        if delay is None:
            told = self._parts.store.tells_changes
            interval = config.rebalance_interval if told else config.load_balancing_interval
            delay = min(interval * (1 + JITTER), config.shutdown_timeout / 3)
        return delay.total_seconds()

    def _late_hand_over_wait_s(self) -> float:
        """Return for how long another member may still hand a partition over to this processor.

        A member that has one to hand over polls after each ``rebalance_interval``, and then sees
        that this processor leaves.
        """
        return (self._config.rebalance_interval * ANSWER_EXTRA_CYCLES).total_seconds()

    async def cycle(self) -> CycleResult:
        """Run one cycle of the balancer, and start and end pumps by its result."""
        busy, running = self.pumps.hand_overs.under_way, self.pumps.running
        expected = self._roster.owner_ids if self._roster else None
        cycle = self._balancer.cycle(self.names, busy, running, self.pumps.work, expected)
        try:
            done = await self.executor.call(cycle)
        finally:  # A cycle that failed may have read them.
            self.pumps.follow(self._balancer.pauses)
        if self._roster is not None:
            self._roster.note_leader(leads=done.actions.is_leader)
        held, actions = self.leases.held, done.actions
        self._is_rebalancing = not actions.is_balanced
        self.pumps.adjust(held, actions.moves.hand_overs, actions.others)
        planned, me = actions.owner_by_partition, self._parts.member.owner_id
        self.preparations.adjust(
            actions.backed_up, lambda name: name in held or planned.get(name) == me
        )
        return done

    def pause(self, partition_id: str) -> bool:
        """Receive nothing from a partition; return whether this processor owns it."""
        is_owned = partition_id in self.leases.held
        if is_owned:
            self.pumps.pause(partition_id)
        return is_owned

    def resume(self, partition_id: str) -> bool:
        """Resume a paused or stopped partition; return whether this processor owns it."""
        is_owned = partition_id in self.leases.held
        if is_owned:
            self.pumps.resume(partition_id)
        return is_owned

    def _on_lost(self, partition_id: str) -> None:
        self.executor.call_soon(lambda: self.pumps.lose(partition_id))

    def _make_pump(self, name: str) -> PumpT:
        handler, ready = self.preparations.take(name)
        lease = self.leases.by_partition.get(name)
        # Without a lease the pump waits, and ends as soon as it is told of the loss.
        epoch = 0 if lease is None else lease.epoch
        return self._work.make_pump(
            Grant(
                name=name,
                epoch=epoch,
                member=self._parts.member,
                remaining_s=lambda: self.leases.remaining_s(name, epoch=epoch),
                verify=lambda: self.executor.call(self.leases.verify(name)),
                ready=ready,
                call=self.executor.call,
            ),
            handler,
        )
