"""One partition: adopt its checkpoint, receive, hand to the handler, note progress, close.

Rule 1: progress is noted after the handler returned or said so, never before.
Rule 2: whatever a pump begins, tasks and links alike, has ended when ``run`` returns.
Rule 3: why it ended is told as it is: to the handler, to the log and to whoever runs the pump.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from math import inf
from random import Random
from typing import Final

from eventproc.beginning import begin
from eventproc.checkpointer import Checkpointer, Verify
from eventproc.config import EventProcessorConfig
from eventproc.context import LiveContext, PartitionIdentity
from eventproc.crash_guard import CrashGuard
from eventproc.delivery import Delivery
from eventproc.ending import EndedError, Ending, GivenUpError, Trust
from eventproc.errors import OwnershipLostError
from eventproc.gate import Gate
from eventproc.giving_up import GivingUp
from eventproc.handler import PartitionHandler
from eventproc.lanes import Lanes
from eventproc.logs import Logger
from eventproc.models import CloseReason, EventPosition, ReceivedEvent
from eventproc.pace import Pace, Paces
from eventproc.ports import DeadLetterSink, EventSource
from eventproc.reception import Reception
from eventproc.retries import waits
from eventproc.statistics import PumpStatistics, Tally
from eventproc.watchdog import Watchdog

RECEIVE_WAIT_MAX: Final = timedelta(seconds=60)
"""How long one call to an idle receiver waits. The end of it changes nothing."""

RECEIVE_WAIT_MIN: Final = timedelta(seconds=0.01)
"""Timers may be a little early; what is left then must not become a busy loop."""

CAREFUL_COUNT: Final = 1000
"""After a crash: so many events singly, where no number says when a checkpoint is due."""

CALL_BUDGET_FRACTION: Final = 0.6
"""Of the shutdown time-out: for calls under way. Then the handler's ``close`` has half of what is
left, and the last checkpoint the rest."""


class PartitionPump:
    """Serves one partition from claim to close."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        handler: PartitionHandler,
        source: EventSource,
        checkpointer: Checkpointer,
        dead_letters: DeadLetterSink | None,
        paces: Sequence[Pace],
        trust: Trust,
        verify: Verify,
        config: EventProcessorConfig,
        rng: Random,
        log: Logger,
    ) -> None:
        self._identity = identity
        self._handler = handler
        self._checkpointer = checkpointer
        self._config = config
        self._log = log
        self._budget = config.shutdown_timeout
        self._ending = ending = Ending(trust)
        own = config.partition_rate_max
        self._paces = Paces([*paces, *([] if own is None else [Pace(own)])], ending)
        self._tally = tally = Tally()
        self._gate = Gate()
        self._reception = Reception(
            identity,
            source=source,
            ending=ending,
            gate=self._gate,
            verify=verify,
            wait_s=waits(config.receiver_backoff, rng),
            tally=tally,
            log=log,
        )
        self._context = LiveContext(
            identity,
            checkpointer=checkpointer,
            ending=ending,
            gate=self._gate,
            last_enqueued=lambda: self._reception.last_enqueued,
            has_state=config.key_lanes == 1,
        )
        wait_s = waits(config.handler_backoff, rng)
        policy = config.failure_policy
        self._delivery = Delivery(
            handler,
            policy=policy,
            giving_up=GivingUp(
                identity,
                then=policy.then,
                sink=dead_letters,
                ending=ending,
                wait_s=wait_s,
                tally=tally,
                log=log,
            ),
            ending=ending,
            wait_s=wait_s,
            tally=tally,
            log=log,
        )
        self._lanes: Lanes | None = None
        self._guard: CrashGuard | None = None
        self._watchdog = self._make_watchdog()
        self._is_forced = False
        self._is_initialized = False
        self._is_handing = self._is_paced = False
        self._failure: Exception | None = None

    def end(self, reason: CloseReason, *, within: timedelta | None = None) -> None:
        """Take no new events; let the calls under way finish; checkpoint and close.

        All of it within the shutdown time-out, or what is left of that.
        """
        self._budget = within or self._budget
        self._ending.end(reason, call_budget=self._budget * CALL_BUDGET_FRACTION)

    def lose(self) -> None:
        """The partition belongs to somebody else: cancel the calls under way, store nothing."""
        self._checkpointer.lose()
        self._ending.lose()

    def force(self) -> None:
        """Before it runs: try again what was given up at the last start."""
        self._is_forced = True

    def pause(self) -> None:
        """Receive nothing until ``resume``."""
        self._gate.pause()

    def resume(self) -> None:
        """Receive again."""
        self._gate.resume()

    @property
    def is_paused(self) -> bool:
        """Whether it was told to receive nothing."""
        return self._gate.is_paused

    @property
    def is_lost(self) -> bool:
        """Whether it was told that the partition belongs to somebody else."""
        return self._ending.is_lost

    @property
    def tally(self) -> Tally:
        """What it counts, while it counts."""
        return self._tally

    def statistics(self) -> PumpStatistics:
        """How this partition does, now."""
        return PumpStatistics(
            partition_id=self._identity.partition_id,
            sequence_number=self._context.sequence_number,
            checkpointed_sequence_number=self._context.checkpointed_sequence_number,
            lag=self._context.lag,
            lag_seconds=self._context.lag_seconds,
            checkpoint_age_seconds=self._checkpointer.unwritten_age_s,
            is_paused=self._gate.is_paused,
            is_stalled=self._watchdog is not None and self._watchdog.is_stalled,
            tally=self._tally.copy(),
        )

    async def run(self) -> CloseReason:
        """Serve the partition until told to end, or until it has to; return why it ended."""
        tasks = [asyncio.create_task(self._do_beside(self._write_progress))]
        if self._watchdog is not None:
            tasks.append(asyncio.create_task(self._do_beside(self._watchdog.watch)))
        try:
            await self._serve()
        except EndedError:
            pass
        except (GivenUpError, OwnershipLostError) as error:
            self._give_up(error)
        finally:
            try:
                await self._close()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                self._ending.finish()
        if self._failure is not None:
            raise self._failure
        return self._ending.reason or CloseReason.HANDLER_FAILED

    async def _do_beside(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something beside the serving that must not end without anybody noticing."""
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - a source of the user's may raise anything
            self._give_up(error)

    async def _write_progress(self) -> None:
        """Store progress; where none may be stored any more, there is nothing left to do here."""
        await self._checkpointer.run()
        self.lose()

    async def _serve(self) -> None:
        first = await self._begin()
        self._is_initialized = True
        await self._delivery.initialize(self._context)
        self._log.info("partition_started", sequence_number=self._context.sequence_number)

        def position() -> EventPosition:
            offset = self._context.offset
            return first if offset is None else EventPosition.from_offset(offset)

        idle_after = self._config.idle_after or timedelta.max
        loop = asyncio.get_running_loop()
        idle_since_s = loop.time()
        while True:
            left = idle_after - timedelta(seconds=loop.time() - idle_since_s)
            wait_max = min(RECEIVE_WAIT_MAX, max(left, RECEIVE_WAIT_MIN))
            events = await self._reception.next(position, self._events_max(), wait_max)
            if events:
                await self._deliver(events)
            elif loop.time() - idle_since_s < idle_after.total_seconds():
                continue
            elif not self._gate.is_paused and (self._lanes is None or self._lanes.is_idle):
                await self._delivery.idle(self._context)
            idle_since_s = loop.time()

    # How it begins.

    async def _begin(self) -> EventPosition:
        """Adopt the checkpoint; return where to start if it names no position."""
        position = await begin(
            self._context,
            checkpointer=self._checkpointer,
            reception=self._reception,
            ending=self._ending,
            otherwise=self._config.position_without_checkpoint(self._identity.partition_id),
            log=self._log,
        )
        self._guard = self._make_guard()
        if self._config.key_lanes > 1:
            self._lanes = Lanes(
                self._context,
                delivery=self._delivery,
                checkpointer=self._checkpointer,
                ending=self._ending,
                config=self._config,
                on_failure=self._give_up,
            )
        return position

    def _make_guard(self) -> CrashGuard:
        policy, batch_size_max = self._config.checkpoint_policy, self._config.batch_size_max
        return CrashGuard(
            self._context,
            checkpointer=self._checkpointer,
            ending=self._ending,
            deliveries_max=self._config.failure_policy.deliveries_max,
            careful_count=(policy.every_events or CAREFUL_COUNT) + batch_size_max,
            watchful_count=policy.unwritten_events_max or inf,
            is_forced=self._is_forced,
            log=self._log,
        )

    def _make_watchdog(self) -> Watchdog | None:
        if self._config.stall_timeout is None:
            return None
        return Watchdog(
            self._config.stall_timeout,
            reception=self._reception,
            ending=self._ending,
            progress=self._progress_made,
            busy_since_s=lambda: (self._lanes or self._context).busy_since_s,
            is_pending=lambda: self._is_handing or not (self._lanes is None or self._lanes.is_idle),
            is_held_back=lambda: (
                self._gate.is_paused or self._is_paced or self._ending.is_waiting_for_trust
            ),
            tally=self._tally,
            log=self._log,
        )

    # What goes through it.

    def _events_max(self) -> int:
        events_max = min(self._config.batch_size_max, self._paces.batch_max or sys.maxsize)
        return events_max if self._lanes is None else min(events_max, self._lanes.room)

    async def _deliver(self, events: Sequence[ReceivedEvent]) -> None:
        """Hand over what is not handled yet: a receiver may begin early."""
        if self._lanes is not None:
            wanted = [event for event in events if self._lanes.is_wanted(event)]
        elif self._context.is_unhandled(events[0]):
            wanted = list(events)
        else:
            wanted = [event for event in events if self._context.is_unhandled(event)]
        if not wanted:
            if self._lanes is not None:
                await self._lanes.take_in(events)
            return
        self._context.newest_handed = wanted[-1].sequence_number
        self._is_paced = True
        try:
            if not self._checkpointer.has_room:
                async with self._ending.waiting():
                    await self._checkpointer.until_room()
            await self._paces.wait(len(wanted))
        finally:
            self._is_paced = False
        self._is_handing = True
        try:
            if self._guard is not None and not self._guard.is_done:
                await self._guard.hand(wanted, self._hand_singly, self._pass_over)
            elif self._lanes is not None:
                await self._lanes.take_in(events)
            else:
                await self._delivery.hand(wanted, self._context)
        finally:
            self._is_handing = False

    async def _hand_singly(self, events: Sequence[ReceivedEvent]) -> None:
        if self._lanes is None:
            await self._delivery.hand(events, self._context)
        else:
            await self._lanes.take_through(events)

    async def _pass_over(self, event: ReceivedEvent, delivery_count: int) -> None:
        if self._lanes is None:
            await self._delivery.give_up(event, delivery_count, self._context)
        else:
            await self._lanes.give_up(event, delivery_count)

    def _progress_made(self) -> object:
        tally, context = self._tally, self._context
        done_count = tally.handled_count + tally.dead_lettered_count + tally.skipped_count
        return done_count, tally.received_count, context.sequence_number, context.completed

    # How it ends.

    def _give_up(self, error: Exception) -> None:
        """End because of something that came to light here, and not because of an order."""
        if isinstance(error, OwnershipLostError):
            self.lose()
        elif isinstance(error, GivenUpError):
            self.end(error.reason)
        else:
            self._failure = self._failure or error
            self._ending.give_up(CloseReason.HANDLER_FAILED)

    async def _close(self) -> None:
        """Close the handler, then store what it handled; each within its part of the budget."""
        await self._reception.close()
        if self._lanes is not None:
            await self._lanes.end()
        reason = self._ending.reason or CloseReason.HANDLER_FAILED
        part_s = self._budget.total_seconds() * (1 - CALL_BUDGET_FRACTION) / 2
        if self._is_initialized:
            await self._delivery.close(self._context, reason, budget_s=part_s)
        if reason is not CloseReason.OWNERSHIP_LOST:
            self._settle_delivery_count(reason)
            try:
                async with asyncio.timeout(part_s):
                    await self._context.checkpoint()
            except TimeoutError:
                number = self._context.sequence_number
                self._log.warning("checkpoint_abandoned", sequence_number=number)
            except OwnershipLostError:
                pass
        self._log.info(
            "partition_stopped",
            reason=reason.value,
            sequence_number=self._context.sequence_number,
            checkpointed_sequence_number=self._context.checkpointed_sequence_number,
        )

    def _settle_delivery_count(self, reason: CloseReason) -> None:
        """Forget how often the next event was handed over, unless that ended badly again."""
        if reason is CloseReason.STALLED:
            self._context.count_delivery(max(1, self._context.delivery_count))
        elif reason is not CloseReason.HANDLER_FAILED and self._guard and self._guard.has_begun:
            self._context.count_delivery(0)
