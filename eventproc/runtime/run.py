"""One run of a processor, from start to stop: creates its parts, opens and closes them in order.

Usually two event loops take part. The store, the leases, the membership and the balancer run on the
store's loop; the source and the pumps on the processor's. Calls between them go through a
``StoreExecutor``. Methods marked "On the store's loop" run there.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final, TypeVar

from eventproc.concurrency.tasks import end, together
from eventproc.config import EventProcessorConfig
from eventproc.core.checkpoint_rules import pumps_writer
from eventproc.core.ownership.cycle import Actions
from eventproc.core.progress import PartitionProgress
from eventproc.errors import (
    ConfigurationError,
    DuplicateOwnerError,
    StoreError,
    StoreRejectedError,
    StoreReplacedError,
)
from eventproc.handler import BlockingPartitionHandler, HandlerFactory
from eventproc.logs import Logger
from eventproc.models import (
    ConsumerGroup,
    Member,
    MemberStatus,
)
from eventproc.ownership.balancer import Balancer, CycleResult
from eventproc.ownership.compatibility import Compatibility
from eventproc.partition.checkpointer import Checkpointer
from eventproc.partition.flow_control import RateLimiter
from eventproc.partition.handler_threads import ThreadedHandler
from eventproc.partition.pump import PartitionPump
from eventproc.partition.pumps import Pumps
from eventproc.partition.scope import PartitionIdentity
from eventproc.ports import CheckpointStore, DeadLetterSink, EventSource
from eventproc.retries import waits
from eventproc.runtime.closing import CloseStack
from eventproc.runtime.descriptors import warn_if_scarce
from eventproc.runtime.store_thread import InlineExecutor, StoreExecutor, ThreadExecutor
from eventproc.telemetry import Instrumentation

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """The arguments of ``EventProcessor``, checked."""

    source: EventSource
    store: CheckpointStore
    handler: HandlerFactory
    dead_letters: DeadLetterSink | None
    group: ConsumerGroup
    member: Member
    config: EventProcessorConfig
    rng: Random
    clock: Callable[[], float] | None
    telemetry: Instrumentation
    log: Logger


def _boot_clock() -> float:
    """Return seconds of a clock that counts suspended time too: leases expire during it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ProcessorRun:
    """One run of a processor, from start to stop."""

    def __init__(self, parts: RunParts, *, changed: Callable[[], None]) -> None:
        """Create the parts, on the running loop; ``changed`` is called to ask for a cycle."""
        self._parts = parts
        self._config = parts.config
        self._open = CloseStack(parts.log)
        self._pump_count = 0
        rate_max = parts.config.rate_max
        self._rate_limits = [] if rate_max is None else [RateLimiter(rate_max)]
        self._is_closed = False
        self._is_rebalancing = True
        self._renewal_task: asyncio.Task[None] | None = None
        self.partition_ids: tuple[str, ...] = ()
        owner_id, store, group = parts.member.owner_id, parts.store, parts.group
        if parts.config.uses_store_thread:
            self._executor: StoreExecutor = ThreadExecutor(f"eventproc-store-{owner_id}")
            self._clock = parts.clock or _boot_clock
        else:
            self._executor = InlineExecutor()
            self._clock = parts.clock or asyncio.get_running_loop().time
        self._balancer = Balancer(
            store,
            group,
            parts.member,
            config=self._config,
            clock=self._clock,
            on_lost=self._on_lost,
            log=parts.log,
        )
        self._compatibility = Compatibility(
            group=group,
            member=parts.member,
            placement=parts.config.placement,
            expiration=parts.config.ownership_expiration,
        )
        self._membership, self.leases = self._balancer.membership, self._balancer.leases
        self.pumps = Pumps(
            self._make_pump,
            lambda p, to_owner_id: self._executor.call(self.leases.transfer(p, to_owner_id)),
            config=self._config,
            changed=changed,
            rng=parts.rng,
            log=parts.log,
        )

    async def open(self) -> None:
        """Open source and store, check the group, write the member record, and start renewals.

        On an error everything that was opened is closed again, and nothing was claimed.
        """
        parts = self._parts
        try:
            self._open.push("store_thread", self._executor.close)
            await self._executor.call(parts.store.open())
            self._open.push("store", lambda: self._executor.call(parts.store.close()))
            await parts.source.open()
            self._open.push("source", parts.source.close)
            if parts.dead_letters is not None:
                await parts.dead_letters.open()
                self._open.push("dead_letters", parts.dead_letters.close)
            await parts.source.check_consumer_group(parts.group.name)
            self.partition_ids = tuple(await parts.source.partition_ids())
            per_partition = parts.source.descriptors_per_partition
            warn_if_scarce(len(self.partition_ids), per_partition, parts.log)
            answer_within = (
                self._config.load_balancing_interval * ANSWER_INTERVALS
                + self._config.rebalance_interval * ANSWER_EXTRA_CYCLES
            )
            await self._executor.call(
                self._membership.enter(
                    answer_within=answer_within,
                    poll_interval=self._config.rebalance_interval,
                    check=self._compatibility.check_records,
                )
            )
            await self._executor.call(self._check_compatibility())
            self.renewing = asyncio.create_task(self._executor.call(self._renew()))
            self._open.push("renewals", self._stop_renewals)
        except StoreRejectedError as error:
            await self._open.close(self._stopped_by_s() + CLOSE_GRACE_S)
            raise ConfigurationError(str(error)) from error
        except BaseException:
            await self._open.close(self._stopped_by_s() + CLOSE_GRACE_S)
            raise

    def _stopped_by_s(self) -> float:
        """Return the time of the loop by which a stop that begins now has to be over."""
        return asyncio.get_running_loop().time() + self._config.shutdown_timeout.total_seconds()

    async def _check_compatibility(self) -> None:
        """Refuse a group that this processor cannot share; delete its member record then."""
        try:
            await self._compatibility.check(self._parts.store)
        except ConfigurationError:
            await self._membership.withdraw()
            raise

    async def _renew(self) -> None:
        """On the store's loop: renew leases and member record; an error in one ends both."""
        self._renewal_task = asyncio.current_task()
        await together(self.leases.keep(), self._membership.keep())

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
        await self._executor.call(self._cancel_renewals())
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
        cycle = self._balancer.cycle(self.partition_ids, (), self.pumps.running)
        done = await self._try_until(until_s, cycle)
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
                return await self._executor.call(work)
        return None

    def _announced_by_s(self) -> float:
        budget_s = self._config.shutdown_timeout.total_seconds() * ANNOUNCEMENT_FRACTION
        return asyncio.get_running_loop().time() + budget_s

    def _drain_delay_s(self) -> float:
        delay = self._config.drain_delay
        if delay is None:
            seen_by_all = self._config.load_balancing_interval * (1 + JITTER)
            delay = min(seen_by_all, self._config.shutdown_timeout / 3)
        return delay.total_seconds()

    def _late_hand_over_wait_s(self) -> float:
        """Return for how long another member may still hand a partition over to this processor.

        A member that has one to hand over polls after each ``rebalance_interval``, and then sees
        that this processor leaves.
        """
        return (self._config.rebalance_interval * ANSWER_EXTRA_CYCLES).total_seconds()

    async def cycle(self) -> CycleResult:
        """Run one cycle of the balancer, and start and end pumps by its result."""
        busy, running = self.pumps.handing_over, self.pumps.running
        done = await self._executor.call(self._balancer.cycle(self.partition_ids, busy, running))
        self._is_rebalancing = not done.actions.is_balanced
        self.pumps.adjust(self.leases.held, done.actions.moves.hand_overs, done.actions.others)
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
        self._executor.call_soon(partial(self.pumps.lose, partition_id))

    def _make_pump(self, partition_id: str) -> PartitionPump:
        parts, call = self._parts, self._executor.call
        handler = parts.handler()
        if isinstance(handler, BlockingPartitionHandler):
            handler = ThreadedHandler(handler)
        self._pump_count += 1
        log = parts.log.bind(partition_id=partition_id)
        checkpointer = Checkpointer(
            partition_id,
            PartitionProgress(has_state=self._config.key_concurrency == 1),
            writer=pumps_writer(parts.member.owner_id, parts.member.incarnation, self._pump_count),
            read=lambda: call(parts.store.read_checkpoint(parts.group, partition_id)),
            write=parts.telemetry.write(
                lambda update: call(parts.store.update_checkpoint(parts.group, update)),
                partition_id,
            ),
            verify=lambda: call(self.leases.verify(partition_id)),
            policy=self._config.checkpoint_policy,
            wait_s=waits(self._config.receiver_backoff, parts.rng),
            log=log,
        )
        return PartitionPump(
            PartitionIdentity(
                partition_id=partition_id, group=parts.group, owner_id=parts.member.owner_id
            ),
            handler=parts.telemetry.handler(handler, partition_id),
            source=parts.source,
            checkpointer=checkpointer,
            dead_letters=parts.dead_letters,
            rate_limits=self._rate_limits,
            remaining_s=partial(self.leases.remaining_s, partition_id),
            config=self._config,
            rng=parts.rng,
            log=log,
        )
