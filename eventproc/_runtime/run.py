"""One run of a processor, from start to stop: creates its parts, opens and closes them in order.

Usually two event loops take part. The store, the leases, the membership and the balancer run on the
store's loop; the source and the pumps on the processor's. Calls between them go through a
``StoreExecutor``. Methods marked "On the store's loop" run there.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, Generic

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._base.retries import waits
from eventproc._base.tasks import cancellation_kept, end, users_code
from eventproc._core.ownership.cycle import Actions
from eventproc._group.balancer import Balancer
from eventproc._group.compatibility import Compatibility
from eventproc._group.pumps.preparations import Preparations
from eventproc._group.pumps.pump import Grant, PumpT, Work
from eventproc._group.pumps.pumps import Pumps
from eventproc._group.pumps.stop_scope import StopScope
from eventproc._runtime.cycles import JITTER, Cycles
from eventproc._runtime.leaving import ANSWER_EXTRA_CYCLES, Leaving
from eventproc._runtime.parts import MemberParts
from eventproc._runtime.renewals import Renewals
from eventproc._runtime.roster_view import RosterView
from eventproc._runtime.store_thread import InlineExecutor, StoreExecutor, ThreadExecutor
from eventproc.errors import (
    ConfigurationError,
    DuplicateOwnerError,
    SourceError,
    StoreError,
    StoreRejectedError,
    StoreReplacedError,
)

DISPLACING: Final = (DuplicateOwnerError, StoreReplacedError)
"""Errors that end a processor at once: another processor uses its owner id, or its store is not the
group's any more. It writes nothing after that."""

ANSWER_INTERVALS: Final = 1.0 + 2 * JITTER
"""A live processor with the same ``owner_id`` polls the group within this many
``load_balancing_interval``, and answers within ``ANSWER_EXTRA_CYCLES`` after that."""

CLOSE_GRACE_S: Final = 2.0
"""On top of the shutdown time-out: for source, store and dead letters to be closed. Less than the
``GRACE`` after which a process that got a signal is ended."""


CLOSE_MIN_S: Final = 0.1
"""What each part gets in any case, if the parts before it used up the time."""


class ProcessorRun(Generic[PumpT]):
    """One run of a processor, from start to stop."""

    def __init__(self, parts: MemberParts, work: Work[PumpT]) -> None:
        """Create the parts, on the running loop."""
        self._parts = parts
        self._work = work
        self._to_close = CloseStack(parts.log)
        self.process_id = os.getpid()
        self.is_closed = False
        """Whether it is closed, or is being closed."""

        self.names: tuple[str, ...] = ()
        """The partitions or resources that exist, as last read."""

        self.awaited = ""
        """What ``open`` waits for, in words for an operator."""

        owner_id, config = parts.member.owner_id, parts.config
        has_thread = config.uses_store_thread
        self.executor: StoreExecutor = (
            ThreadExecutor(f"eventproc-store-{owner_id}") if has_thread else InlineExecutor()
        )
        clock = _boot_clock if has_thread else asyncio.get_running_loop().time
        self._balancer = Balancer(
            parts.store,
            parts.group,
            parts.member,
            config=config,
            clock=parts.clock or clock,
            on_lost=self._on_lost,
            log=parts.log,
            patience=parts.roster.patience if parts.roster else None,
        )
        self.leases = self._balancer.leases
        self.cycles = Cycles(parts)
        changed = self.cycles.wake
        self._roster: RosterView | None = None
        if parts.roster is not None:
            self._roster = RosterView(parts.roster, owner_id, changed=changed, log=parts.log)
        wait_s = waits(config.handler_backoff, parts.rng)
        self.preparations = Preparations(work, wait_s, parts.log)
        self.pumps: Pumps[PumpT] = Pumps(
            self._make_pump,
            lambda p, to_owner_id: self.executor.call(self.leases.transfer(p, to_owner_id)),
            backoff=config.handler_backoff,
            changed=changed,
            rng=parts.rng,
            log=parts.log,
        )
        self._renewals = Renewals(parts, self.leases, self.executor, changed)
        self._leaving = Leaving(parts, self._balancer, self.pumps, self._renewals, self.executor)

    async def open(self) -> asyncio.Task[None]:
        """Open store and work, check the group, write the member record, and start renewals.

        Returns the task that renews: an error in it has to end the run.

        On an error everything that was opened is closed again, the member record is deleted if the
        store answers, and nothing was claimed.
        """
        parts, config = self._parts, self._parts.config
        compatibility = Compatibility(
            group=parts.group,
            member=parts.member,
            placement=config.placement,
            expiration=config.ownership_expiration,
        )
        try:
            self.awaited = "the store to answer"
            self._to_close.push("store_thread", self.executor.close)
            await self.executor.call(parts.store.open())
            self._to_close.push("store", lambda: self.executor.call_last(parts.store.close()))
            self.awaited = "the hub, or the sink of dead letters, to answer"
            await self._work.open(self._to_close)
            if self._roster is not None:
                self.awaited = "the roster to answer"
                await self._roster.open(self._to_close)
            self._to_close.push("preparations", self.preparations.close)
            self.awaited = "the list of partitions or resources"
            self.names = tuple(await self._work.names())
            answer_within = (
                config.load_balancing_interval * ANSWER_INTERVALS
                + config.rebalance_interval * ANSWER_EXTRA_CYCLES
            )
            self.awaited = (
                f"its entry into the group, up to {answer_within.total_seconds():.3g} s if the "
                "last process with its owner id did not leave"
            )
            await self.executor.call(
                self._balancer.membership.enter(
                    answer_within=answer_within,
                    poll_interval=config.rebalance_interval,
                    check=compatibility.check_records,
                )
            )
            # Again: another processor may have entered between the check and this one's write.
            await self.executor.call(compatibility.check(parts.store))
        except BaseException as error:
            self.is_closed = True
            until_s = self._leaving.over_at_s
            await self._leaving.retreat()
            await self._to_close.close(until_s + CLOSE_GRACE_S)
            if isinstance(error, StoreRejectedError):
                raise ConfigurationError(str(error)) from error
            raise
        renewing = asyncio.create_task(self.executor.call(self._renewals.keep()))
        self._to_close.push("renewals", partial(self._stop_renewals, renewing))
        return renewing

    async def _stop_renewals(self, renewing: asyncio.Task[None]) -> None:
        """Cancel the renewals on the store's loop, then the task that waits for them here."""
        await self.executor.call(self._renewals.cancel())
        await end([renewing])

    async def close(self, *, is_displaced: bool = False) -> None:
        """Drain and hand over all partitions within the shutdown time-out, and close everything.

        Args:
            is_displaced: Whether one of ``DISPLACING`` ended the run: then no record is written.
        """
        if self.is_closed:
            return
        self.is_closed = True
        leaving, until_s = self._leaving, self._leaving.over_at_s
        try:
            if is_displaced:
                await leaving.close_displaced(until_s)
            elif self._parts.config.static_membership:
                await leaving.keep_leases(until_s)
            else:
                await leaving.leave_group(
                    self.names, until_s, is_rebalancing=not self.cycles.is_balanced
                )
        finally:
            await self._to_close.close(until_s + CLOSE_GRACE_S)

    async def repeat_cycles(self) -> None:
        """Run one cycle after the other; raise only errors that end the processor."""
        loop, cycles = asyncio.get_running_loop(), self.cycles
        while True:
            cycles.begin()
            begun_s, pumps = loop.time(), self.pumps
            expected = self._roster.owner_ids if self._roster else None
            cycle = self._balancer.cycle(
                self.names, pumps.hand_overs.under_way, pumps.running, pumps.work, expected
            )
            try:
                done = await self.executor.call(cycle)
            except DISPLACING:
                raise
            except StoreError as error:
                pumps.follow(self._balancer.pauses)  # A cycle that failed may have read them.
                cycles.note_failure(error, loop.time() - begun_s)
            else:
                self._adjust(done.actions)
                cycles.note(done, loop.time() - begun_s)
            await cycles.wait_for_next()

    def _adjust(self, actions: Actions) -> None:
        """Start and end pumps by what a cycle decided, and by the leases that it has won."""
        if self._roster is not None:
            self._roster.note_leader(leads=actions.is_leader)
        self.pumps.follow(self._balancer.pauses)
        held = self.leases.held
        self.pumps.adjust(held, actions.moves.hand_overs, actions.others)
        plan, me = actions.plan, self._parts.member.owner_id
        self.preparations.adjust(
            plan.backed_up, lambda name: name in held or plan.owner_by_partition.get(name) == me
        )

    def begin_reading(self) -> asyncio.Task[None]:
        """Read which partitions or resources exist until ``close``, which waits for its end."""
        reading = asyncio.create_task(self._read_names())
        self._to_close.push("names", partial(end, [reading]))
        return reading

    async def _read_names(self) -> None:
        """Read periodically which partitions or resources exist."""
        work, log = self._work, self._parts.log
        failure = ConditionLogger(log, "partition_ids_failed", "partition_ids_recovered")
        while True:
            await asyncio.sleep(work.names_interval.total_seconds())
            try:
                with cancellation_kept(), users_code():
                    names = tuple(await work.names())
            # A client that is made anew may miss a file, or find no descriptor, for a moment.
            except (SourceError, ConfigurationError, OSError) as error:
                failure.note(error=str(error))
                continue
            failure.end()
            if names != self.names:
                log.info("partition_count_changed", before=len(self.names), after=len(names))
                self.names = names
                self.cycles.wake()

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

    def _make_pump(self, name: str, *, is_forced: bool) -> PumpT:
        handler, ready = self.preparations.take(name)
        lease = self.leases.by_partition.get(name)
        # Without a lease the pump waits, and ends as soon as it is told of the loss.
        epoch = 0 if lease is None else lease.epoch
        return self._work.make_pump(
            Grant(
                name=name,
                epoch=epoch,
                member=self._parts.member,
                stop=StopScope(partial(self.leases.remaining_s, name, epoch=epoch)),
                verify=lambda: self.executor.call(self.leases.verify(name)),
                ready=ready,
                call=self.executor.call,
                is_forced=is_forced,
            ),
            handler,
        )


class CloseStack:
    """The parts that are open, and how to close each, within a limit of time.

    A client may wait for an answer that never comes. That must not keep a processor from stopping.
    """

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._stack = AsyncExitStack()
        self._until_s = 0.0

    def push(self, part: str, close: Callable[[], Awaitable[None]]) -> None:
        """Note a part that was opened, by its name in the log."""
        self._stack.push_async_callback(partial(self._close_part, part, close))

    async def close(self, until_s: float) -> None:
        """Close every part, the newest first, until this time of the running loop.

        A part that is not closed by then is cancelled, logged and left. An error of a part is
        raised after the others were closed.
        """
        self._until_s = until_s
        await self._stack.aclose()

    async def _close_part(self, part: str, close: Callable[[], Awaitable[None]]) -> None:
        now_s = asyncio.get_running_loop().time()
        limit = asyncio.timeout_at(max(self._until_s, now_s + CLOSE_MIN_S))
        try:
            async with limit:
                await close()
        except TimeoutError:
            if not limit.expired():  # Its own, not ours.
                raise
            self._log.error("close_timed_out", part=part)


def _boot_clock() -> float:
    """Return seconds of a clock that counts suspended time too: leases expire during it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
