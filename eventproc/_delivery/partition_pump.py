"""Serves one partition: adopt its checkpoint, receive, call the handler, note progress, close.

Rule 1: progress is noted after the handler returned or called ``done``, never before.
Rule 2: every task and link that a pump starts has ended when ``run`` returns.
Rule 3: the handler, the log and the caller of ``run`` get the same close reason.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final

from eventproc._base.logs import Logger
from eventproc._base.retries import waits
from eventproc._base.tasks import users_code
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._core.ownership.pauses import Pause
from eventproc._core.placement.loads import WorkDone
from eventproc._core.placement.published import measured_by
from eventproc._delivery.adoption import Adoption
from eventproc._delivery.checkpointer import Checkpointer, CheckpointRecord
from eventproc._delivery.commits import Commits
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.context import LiveContext
from eventproc._delivery.delivery import Delivery
from eventproc._delivery.failure_actions import FailureActions
from eventproc._delivery.flow_control import PauseSwitch, RateLimiter
from eventproc._delivery.handler import PartitionHandler
from eventproc._delivery.handler_calls import HandlerCalls
from eventproc._delivery.links import Links
from eventproc._delivery.reader import FormerHubError, PartitionReader
from eventproc._delivery.scope import (
    CallReport,
    PartitionIdentity,
    PartitionScope,
    WorkMeter,
)
from eventproc._delivery.stall_watchdog import Watchdog
from eventproc._delivery.start import find_start
from eventproc._delivery.steady_link import SteadyLink
from eventproc._group.pumps.stop_scope import PartitionStoppedError, StoppedError, StopScope
from eventproc.errors import OwnershipLostError, StateRefusedError, StoreUnavailableError
from eventproc.models import CloseReason
from eventproc.models._statistics import DeliveryCounters, PumpStatistics
from eventproc.ports import DeadLetterSink, Transactions

CALL_BUDGET_FRACTION: Final = 0.75
"""The part of the shutdown time-out for calls under way. Half of the rest is for the handler's
``close``. The last checkpoint has everything that is left then, and at least the other half."""


_TRANSIENT: Final = (StateRefusedError, StoreUnavailableError)
"""Errors of the store in a handler's call. They are never its events' fault."""


class PartitionPump:
    """Serves one partition from claim to close."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        record: CheckpointRecord,
        handler: PartitionHandler,
        report: CallReport | None = None,
        links: Links,
        transactions: Transactions | None = None,
        dead_letters: DeadLetterSink | None,
        rate_limits: Sequence[RateLimiter],
        stop: StopScope,
        ready: Callable[[], Awaitable[None]],
        is_forced: bool = False,
        config: EventProcessorConfig,
        rng: Random,
        log: Logger,
    ) -> None:
        self._ready = ready
        self._initial_position = config.position_without_checkpoint(identity.partition_id)
        self._log = log
        self._budget = config.shutdown_timeout
        self._close_until_s: float | None = None
        self._stop_scope = stop
        self.counters = DeliveryCounters()
        """The live counters; they change while the pump runs."""

        self._scope = scope = PartitionScope(
            identity=identity,
            stop=self._stop_scope,
            counters=self.counters,
            log=log,
            meter=WorkMeter(counts_bytes=measured_by(config.placement) == "bytes"),
        )
        receiver_wait_s = waits(config.receiver_backoff, rng)
        link = SteadyLink(
            links,
            scope=scope,
            verify=record.verify,
            wait_s=receiver_wait_s,
            takes_columns=handler.takes_columns,
            gathering=config.gathering(takes_columns=handler.takes_columns),
        )
        self._pause_switch = PauseSwitch(link.interrupt)
        self._reader = PartitionReader(link, scope=scope, pause_switch=self._pause_switch)
        self._checkpointer = checkpointer = Checkpointer(
            record,
            PartitionProgress(has_state=config.key_concurrency == 1),
            policy=links.checkpoint_policy(config.checkpoint_policy),
            wait_s=receiver_wait_s,
            log=log,
            is_exact=transactions is not None,
            on_stored=links.settle,
        )
        self._context = LiveContext(
            scope,
            checkpointer=checkpointer,
            pause_switch=self._pause_switch,
            last_enqueued=lambda: link.last_enqueued,
            commits=None
            if transactions is None
            else Commits(
                transactions,
                checkpointer,
                group=identity.group,
                idle_max=config.ownership_expiration,
                log=log,
            ),
        )
        wait_s = waits(config.handler_backoff, rng)
        policy = config.failure_policy
        self._calls = HandlerCalls(
            handler,
            # A refused state is the fault of the settings: every event would be given up for it.
            policy=replace(policy, transient=(*policy.transient, *_TRANSIENT)),
            action=FailureActions(
                policy.action, sink=dead_letters, scope=scope, wait_s=wait_s
            ).apply,
            scope=scope,
            wait_s=wait_s,
            pause_switch=self._pause_switch,
            report=report,
        )
        self._adoption = Adoption(
            checkpointer,
            scope=scope,
            is_from_first=self._initial_position.is_earliest,
            hub_created_at=lambda: links.source.created_at,
            recreated_hub=config.recreated_hub,
            wait_s=receiver_wait_s,
            report=partial(self._calls.report_error, self._context),
        )
        self._delivery = Delivery(
            self._reader,
            self._context,
            self._calls,
            checkpointer=checkpointer,
            rate_limits=rate_limits,
            scope=scope,
            config=config,
            is_forced=is_forced,
            on_failure=self._fail,
        )
        self._watchdog = Watchdog(
            config,
            delivery=self._delivery,
            reader=self._reader,
            scope=scope,
            pause_switch=self._pause_switch,
        )
        self._is_initialized = self._is_served = False
        self._failure: BaseException | None = None

    def end(self, reason: CloseReason, *, within: timedelta | None = None) -> None:
        """Take no new events, let the calls under way finish, write the checkpoint and close.

        All of that takes at most *within*, by default the shutdown time-out.
        """
        self._budget = within or self._budget
        self._close_until_s = asyncio.get_running_loop().time() + self._budget.total_seconds()
        self._stop_scope.end(reason, call_budget=self._budget * CALL_BUDGET_FRACTION)

    def lose(self) -> None:
        """Stop because another processor owns the partition: cancel calls, store nothing."""
        self._checkpointer.lose()
        self._stop_scope.lose()

    def pause(self) -> None:
        """Receive nothing until ``resume``."""
        self._pause_switch.pause()

    def resume(self) -> None:
        """End the pause that ``pause`` began."""
        self._pause_switch.resume()

    def follow(self, pause: Pause | None) -> None:
        """Receive nothing while the group pauses the partition."""
        self._pause_switch.follow(pause)

    @property
    def is_paused(self) -> bool:
        """Whether ``pause`` was called, and ``resume`` not since."""
        return self._pause_switch.is_paused_here

    @property
    def is_lost(self) -> bool:
        """Whether ``lose`` was called: another processor owns the partition."""
        return self._stop_scope.is_lost

    @property
    def has_unstored_progress(self) -> bool:
        """Whether handled events would be delivered again if the process died now."""
        return self._checkpointer.uncommitted_age_s > 0

    @property
    def work(self) -> WorkDone:
        """The work done for the partition so far."""
        return self._scope.meter.work_at(asyncio.get_running_loop().time())

    def statistics(self) -> PumpStatistics:
        """Return a snapshot of this partition's position, lag and counters."""
        refusal, group_pause = self._checkpointer.refusal, self._pause_switch.group_pause
        return PumpStatistics(
            partition_id=self._scope.identity.partition_id,
            sequence_number=self._context.sequence_number,
            checkpointed_sequence_number=self._context.checkpointed_sequence_number,
            lag=self._context.lag,
            lag_seconds=self._context.lag_seconds,
            checkpoint_age_seconds=self._checkpointer.uncommitted_age_s,
            checkpoint_error=None if refusal is None else str(refusal),
            receiver_failing_seconds=self._reader.link.failures.failing_s,
            receiver_error=self._reader.link.failures.error,
            is_served=self._is_served,
            is_trusted=not self._stop_scope.is_waiting_for_trust,
            is_paused=self._pause_switch.is_paused,
            paused_since=None if group_pause is None else group_pause.since,
            pause_reason=None if group_pause is None else group_pause.reason,
            is_stalled=self._watchdog.is_stalled,
            progress_age_seconds=self._watchdog.progress_age_s,
            call_seconds=self._watchdog.call_s,
            stalled_sequence_number=self._watchdog.stalled_at,
            handler_error=self._watchdog.handler_error,
            counters=self.counters.copy(),
        )

    async def run(self) -> CloseReason:
        """Serve the partition until ``end``, ``lose`` or an error; return why it ended."""
        beside = (self._write_progress, self._watchdog.watch)
        tasks = [asyncio.create_task(self._run_in_background(work)) for work in beside]
        try:
            await self._serve()
        except StoppedError:
            pass
        except (PartitionStoppedError, OwnershipLostError) as error:
            self._fail(error)
        except FormerHubError:
            await self._leave_former_hub()
        finally:
            try:
                await self._close()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                self._checkpointer.lose()
                self._stop_scope.finish()
        if self._failure is not None:
            raise self._failure
        return self._stop_scope.conclude()

    async def _run_in_background(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run *work* beside the receive loop; an error in it ends the pump."""
        try:
            with users_code():
                await work()
        except Exception as error:  # noqa: BLE001 - a user's source may raise anything
            self._fail(error)

    async def _write_progress(self) -> None:
        """Write checkpoints; when no more may be written, the partition is lost."""
        await self._checkpointer.run()
        self.lose()

    async def _serve(self) -> None:
        start = await find_start(
            self._adoption,
            checkpointer=self._checkpointer,
            reader=self._reader,
            scope=self._scope,
            initial_position=self._initial_position,
        )
        with self._stop_scope.waiting():
            await self._ready()
        self._is_initialized = True
        await self._calls.initialize(self._context)
        self._is_served = True
        self._log.info(
            "partition_started",
            sequence_number=self._context.sequence_number,
            is_moved_by_operator=self._adoption.is_from_operator or None,
        )
        await self._delivery.run(start)

    # Ending.

    def _fail(self, error: BaseException) -> None:
        """End because of an error in this pump."""
        if isinstance(error, OwnershipLostError):
            self.lose()
        elif isinstance(error, PartitionStoppedError):
            self.end(error.reason)
        else:
            self._failure = self._failure or error
            self._stop_scope.abort(CloseReason.HANDLER_FAILED)

    async def _leave_former_hub(self) -> None:
        """Mark the checkpoint, and end; the next pump follows the policy ``recreated_hub``.

        Before the first event there is nothing to mark: that position is valid in any hub.
        """
        try:
            if self._checkpointer.progress.sequence_number != BEFORE_FIRST_SEQUENCE_NUMBER:
                with self._stop_scope.waiting():
                    await self._checkpointer.mark_former_hub()
        except StoppedError:
            pass
        except OwnershipLostError:
            self.lose()
        else:
            self.end(CloseReason.SOURCE_FAILED)

    async def _close(self) -> None:
        """Close the handler, then write the last checkpoint, in what is left of the budget."""
        self._is_served = False
        self._stop_scope.conclude()  # From here on, lanes begin no new calls.
        await self._reader.link.stop()
        try:
            await self._finish()
        finally:
            await self._reader.link.close()

    async def _finish(self) -> None:
        """Wait for calls under way, close the handler, and write the last checkpoint."""
        await self._delivery.lanes.end()
        reason = self._stop_scope.conclude()
        part_s = self._budget.total_seconds() * (1 - CALL_BUDGET_FRACTION) / 2
        now_s = asyncio.get_running_loop().time()
        until_s = now_s + 2 * part_s if self._close_until_s is None else self._close_until_s
        if self._is_initialized:
            await self._calls.close(self._context, reason, budget_s=part_s)
        self._delivery.guard.set_last_isolation(reason)
        try:
            least_s = asyncio.get_running_loop().time() + part_s
            async with asyncio.timeout_at(max(until_s, least_s)):
                await self._checkpointer.flush()
        except TimeoutError:
            self._log.warning("checkpoint_abandoned", sequence_number=self._context.sequence_number)
        except OwnershipLostError:
            pass  # The checkpoint is the new owner's.
        self._log.info(
            "partition_stopped",
            reason=reason.value,
            sequence_number=self._context.sequence_number,
            checkpointed_sequence_number=self._context.checkpointed_sequence_number,
        )
