"""Everything that exists between a processor's start and its stop, and how the parts fit together.

Two loops may take part. On the control side live the store, the leases, presence and the balancer;
on the processor's loop the source and the pumps. What crosses goes through ``Control``.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final

from eventproc.admission import check_admission
from eventproc.balancer import Balancer, Farewell, Round
from eventproc.blocking import ThreadedHandler
from eventproc.checkpointer import Checkpointer
from eventproc.config import EventProcessorConfig
from eventproc.context import PartitionIdentity
from eventproc.control import Control, LoopThread, SharedLoop
from eventproc.ending import Trust
from eventproc.errors import ConfigurationError, StoreError
from eventproc.handler import BlockingPartitionHandler, HandlerFactory
from eventproc.leases import Leases
from eventproc.logs import Logger
from eventproc.membership import Member
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    WriteOutcome,
)
from eventproc.pace import Pace
from eventproc.ports import CheckpointStore, DeadLetterSink, EventSource
from eventproc.presence import Presence
from eventproc.pump import PartitionPump
from eventproc.pumps import Pumps
from eventproc.telemetry import Watch

JITTER: Final = 0.1
"""Part of an interval by which cycles are spread, so that a fleet does not read in step."""

ANSWER_INTERVALS: Final = 1.0 + 2 * JITTER
"""A live holder of an ``owner_id`` looks at the group within this many intervals, ..."""

ANSWER_EXTRA_CYCLES: Final = 4
"""... and answers within this many unsettled ones more."""

FAREWELL_FRACTION: Final = 0.2
"""Of the shutdown time-out: for telling the group, before the partitions are closed."""

WITHDRAWAL_FRACTION: Final = 0.1
"""Of the shutdown time-out: for taking the presence back, after they are closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a processor was given."""

    source: EventSource
    store: CheckpointStore
    handler: HandlerFactory
    dead_letters: DeadLetterSink | None
    group: ConsumerGroup
    member: Member
    config: EventProcessorConfig
    rng: Random
    clock: Callable[[], float] | None
    watch: Watch
    log: Logger


def _boot_clock() -> float:
    """Seconds that go on while the machine is suspended: others took over in that time."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Session:
    """One run of a processor."""

    def __init__(self, parts: Parts, *, changed: Callable[[], None]) -> None:
        """Put the parts together, on the running loop; ``changed`` asks for a look at the group."""
        self._parts = parts
        self._config = parts.config
        self._stack = AsyncExitStack()
        self._pump_count = 0
        rate_max = parts.config.rate_max
        self._paces = [] if rate_max is None else [Pace(rate_max)]
        self._is_closed = False
        self._is_expecting = True
        self.partition_ids: tuple[str, ...] = ()
        owner_id, store, group = parts.member.owner_id, parts.store, parts.group
        if parts.config.uses_store_thread:
            self._control: Control = LoopThread(f"eventproc-store-{owner_id}")
            self._clock = parts.clock or _boot_clock
        else:
            self._control = SharedLoop()
            self._clock = parts.clock or asyncio.get_running_loop().time
        self._presence = Presence(
            store,
            group,
            parts.member,
            expiration=self._config.ownership_expiration,
            reserve_patience=self._config.reserve_patience,
            clock=self._clock,
            on_declared_dead=lambda: self.leases.lose_all(),  # noqa: PLW0108 - made below
            on_lapsed=lambda: self.leases.doubt_all(),  # noqa: PLW0108
            log=parts.log,
        )
        self.leases = Leases(
            store,
            group,
            owner_id,
            expiration=self._config.ownership_expiration,
            clock=self._clock,
            on_lost=self._tell_lost,
            log=parts.log,
            is_sole_holder=self._presence.is_sole_holder,
            session_trusted_until_s=(
                self._presence.trusted_until_s if self._presence.is_session else None
            ),
        )
        self._balancer = Balancer(
            store,
            group,
            owner_id,
            leases=self.leases,
            presence=self._presence,
            config=self._config,
            clock=self._clock,
            log=parts.log,
        )
        self.pumps = Pumps(
            self._make_pump,
            self._give,
            config=self._config,
            changed=changed,
            rng=parts.rng,
            log=parts.log,
        )

    async def open(self) -> None:
        """Check everything at the door, make this processor known, and start the renewals.

        On an error everything that was opened is closed again, and nothing was claimed.
        """
        parts = self._parts
        try:
            self._stack.push_async_callback(self._control.close)
            await self._control.call(parts.store.open())
            self._stack.push_async_callback(self._close_store)
            await parts.source.open()
            self._stack.push_async_callback(parts.source.close)
            if parts.dead_letters is not None:
                await parts.dead_letters.open()
                self._stack.push_async_callback(parts.dead_letters.close)
            await parts.source.check_consumer_group(parts.group.name)
            self.partition_ids = tuple(await parts.source.partition_ids())
            answer_within = (
                self._config.load_balancing_interval * ANSWER_INTERVALS
                + self._config.unsettled_interval * ANSWER_EXTRA_CYCLES
            )
            await self._control.call(
                self._presence.enter(
                    answer_within=answer_within, look_every=self._config.unsettled_interval
                )
            )
            await self._control.call(self._check_admission())
            self.renewing = asyncio.create_task(self._control.call(self._keep_alive()))
            self._stack.callback(self.renewing.cancel)
        except BaseException:
            await self._stack.aclose()
            raise

    async def _check_admission(self) -> None:
        """Who enters is seen already; so of two that cannot live together one sees the other."""
        parts = self._parts
        try:
            await check_admission(
                parts.store, parts.group, parts.member, expiration=self._config.ownership_expiration
            )
        except ConfigurationError:
            await self._presence.withdraw()
            raise

    async def _keep_alive(self) -> None:
        await asyncio.gather(self.leases.keep(), self._presence.keep())

    async def close(self, *, is_displaced: bool = False) -> None:
        """Drain, release and let go of everything, within the shutdown time-out.

        Args:
            is_displaced: Another process acts under this name, so nothing that is recorded under
                it may be touched any more.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if is_displaced:
                self.pumps.lose_all()
            elif self._config.keeps_ownership_on_stop:
                await self._step_away()
            else:
                await self._leave()
        finally:
            await self._stack.aclose()

    async def _leave(self) -> None:
        """Give everything to the others, and go."""
        until_s = asyncio.get_running_loop().time() + self._config.shutdown_timeout.total_seconds()
        farewell = await self._say_farewell()
        if farewell.has_others and farewell.targets:
            await asyncio.sleep(self._leaving_notice_s())
            farewell = await self._say_farewell()
        elif self._is_expecting:
            await asyncio.sleep(self._last_gifts_s())
            farewell = await self._say_farewell()
        await self._drain(until_s, farewell.targets)
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout_at(until_s):
                await self._control.call(self._balancer.part(self.pumps.running))

    async def _step_away(self) -> None:
        """Stop serving, and leave everything to the next start under this name."""
        until_s = asyncio.get_running_loop().time() + self._config.shutdown_timeout.total_seconds()
        await self._drain(until_s, None)
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout_at(until_s):
                # The next start has a whole expiration from now on.
                await self._control.call(self.leases.renew_all())
                await self._control.call(self._presence.step_away())

    async def _drain(self, until_s: float, targets: Mapping[str, str | None] | None) -> None:
        drained_s = until_s - self._config.shutdown_timeout.total_seconds() * WITHDRAWAL_FRACTION
        with suppress(TimeoutError):
            async with asyncio.timeout_at(drained_s):
                left_s = drained_s - asyncio.get_running_loop().time()
                await self.pumps.drain(self.leases.held, targets, timedelta(seconds=left_s))

    async def _say_farewell(self) -> Farewell:
        budget_s = self._config.shutdown_timeout.total_seconds() * FAREWELL_FRACTION
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(budget_s):
                return await self._control.call(
                    self._balancer.farewell(self.partition_ids, self.pumps.running)
                )
        return Farewell(targets={}, has_others=False)

    def _leaving_notice_s(self) -> float:
        notice = self._config.leaving_notice
        if notice is None:
            seen_by_all = self._config.load_balancing_interval * (1 + JITTER)
            notice = min(seen_by_all, self._config.shutdown_timeout / 3)
        return notice.total_seconds()

    def _last_gifts_s(self) -> float:
        """How long somebody may still hand over to this processor, who does not know it leaves.

        Whoever has something to give looks at the group after each unsettled interval.
        """
        return (self._config.unsettled_interval * ANSWER_EXTRA_CYCLES).total_seconds()

    async def cycle(self) -> Round:
        """Do one look at the group, and adjust the pumps."""
        busy, running = self.pumps.handing_over, self.pumps.running
        done = await self._control.call(self._balancer.cycle(self.partition_ids, busy, running))
        self._is_expecting = not done.moves.is_settled
        self.pumps.adjust(self.leases.held, done.moves.hand_overs, done.moves.others)
        return done

    def pause(self, partition_id: str) -> bool:
        """Let a partition receive nothing; return whether it is ours."""
        is_ours = partition_id in self.leases.held
        if is_ours:
            self.pumps.pause(partition_id)
        return is_ours

    def resume(self, partition_id: str) -> bool:
        """Let a partition that was paused or stopped go on; return whether it is ours."""
        is_ours = partition_id in self.leases.held
        if is_ours:
            self.pumps.resume(partition_id)
        return is_ours

    async def _close_store(self) -> None:
        await self._control.call(self._parts.store.close())

    def _tell_lost(self, partition_id: str) -> None:
        self._control.tell(partial(self.pumps.lose, partition_id))

    async def _give(self, partition_id: str, owner_id: str | None) -> WriteOutcome:
        return await self._control.call(self.leases.give(partition_id, owner_id))

    def _make_pump(self, partition_id: str) -> PartitionPump:
        parts = self._parts
        handler = parts.handler()
        if isinstance(handler, BlockingPartitionHandler):
            handler = ThreadedHandler(handler)
        handler = parts.watch.handler(handler, partition_id)
        self._pump_count += 1
        log = parts.log.bind(partition_id=partition_id)
        verify = partial(self._verify, partition_id)
        checkpointer = Checkpointer(
            partition_id,
            writer=f"{parts.member.owner_id}/{parts.member.incarnation}/{self._pump_count}",
            read=partial(self._read_checkpoint, partition_id),
            write=parts.watch.write(self._write_checkpoint, partition_id),
            verify=verify,
            policy=self._config.checkpoint_policy,
            backoff=self._config.receiver_backoff,
            log=log,
        )
        return PartitionPump(
            PartitionIdentity(
                partition_id=partition_id, group=parts.group, owner_id=parts.member.owner_id
            ),
            handler=handler,
            source=parts.source,
            checkpointer=checkpointer,
            dead_letters=parts.dead_letters,
            paces=self._paces,
            trust=Trust(partial(self.leases.trusted_until_s, partition_id), self._clock),
            verify=verify,
            config=self._config,
            rng=parts.rng,
            log=log,
        )

    async def _verify(self, partition_id: str) -> bool:
        return await self._control.call(self.leases.verify(partition_id))

    async def _read_checkpoint(self, partition_id: str) -> Checkpoint | None:
        parts = self._parts
        return await self._control.call(parts.store.read_checkpoint(parts.group, partition_id))

    async def _write_checkpoint(self, update: CheckpointUpdate) -> CheckpointResult:
        parts = self._parts
        return await self._control.call(parts.store.update_checkpoint(parts.group, update))
