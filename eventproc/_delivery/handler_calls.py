"""Calls the handler until each event is done: handled, or given up.

Rule 1: the handler is called only while the lease is trusted. A call that lasts longer than the
trust is cancelled; when the lease is renewed, the call's events are delivered again.
Rule 2: after a failed call the handler is called again with the events that are not handled yet.
Rule 3: progress is noted after the handler returned or called ``done``, never before.
Rule 4: while the partition is paused, no call with events begins: what was received waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from eventproc._base.logs import error_text
from eventproc._base.tasks import users_call
from eventproc._core.delivery.failure import FailureReport, RetryState, next_part
from eventproc._core.delivery.window import frozen
from eventproc._delivery.blame import blamed, checked, shown_error
from eventproc._delivery.call_context import CallContext
from eventproc._delivery.config import FailurePolicy
from eventproc._delivery.context import LiveContext
from eventproc._delivery.flow_control import PauseSwitch
from eventproc._delivery.handler import PartitionHandler
from eventproc._delivery.scope import PartitionScope
from eventproc._group.pumps.stop_scope import StoppedError
from eventproc.errors import OwnershipLostError
from eventproc.models import CloseReason, ReceivedEvent


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one call: it succeeded, it failed, or (neither) it was cancelled."""

    is_done: bool = False
    error: Exception | None = None
    report: FailureReport = field(default_factory=FailureReport)
    """Which events are known to have failed."""


GiveUp: TypeAlias = Callable[[ReceivedEvent, Exception | None, int], Awaitable[None]]
"""Gets an event, its last error (``None``: processes died with it) and the number of attempts, and
returns when the position may move past the event."""

DONE: Final = Outcome(is_done=True)
CANCELLED: Final = Outcome()


class _NotAllowedError(Exception):
    """A call was not begun, because it is not allowed any more."""


class HandlerCalls:
    """Calls the handler of one partition; with key lanes, for several keys at once."""

    def __init__(
        self,
        handler: PartitionHandler,
        *,
        policy: FailurePolicy,
        action: GiveUp,
        scope: PartitionScope,
        wait_s: Callable[[int], float],
        pause_switch: PauseSwitch | None = None,
    ) -> None:
        """Prepare the calls.

        Args:
            handler: The user's handler.
            policy: When an event is given up.
            action: Does what the policy says with an event that is given up.
            scope: Ends calls and waits when the pump stops; has the counters and the log.
            wait_s: Seconds to wait after the n-th failure in a row.
            pause_switch: Holds events back while the partition is paused; none: it never is.
        """
        self._handler = handler
        self._policy = policy
        self._action = action
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._meter = scope.meter
        self._log = scope.log
        self._wait_s = wait_s
        self._pause_switch = pause_switch or PauseSwitch()
        self._idle_failures_in_row = 0

    async def initialize(self, context: CallContext) -> None:
        """Call the handler's ``initialize`` until it succeeds."""
        attempt = 0
        while True:
            outcome = await self._call(context, lambda: self._handler.initialize(context))
            if outcome.is_done:
                if attempt:
                    self._log.info("handler_recovered", attempt_count=attempt + 1)
                return
            if outcome.error is not None:
                attempt += 1
                await self._report(context, outcome.error, attempt)
                await self._back_off(attempt)

    async def idle(self, context: LiveContext) -> None:
        """Call the handler's ``on_idle``; a state that it sets is stored."""
        outcome = await self._call(context, lambda: self._handler.on_idle(context))
        if outcome.error is not None:
            self._idle_failures_in_row += 1
            await self._report(context, outcome.error, self._idle_failures_in_row)
        elif outcome.is_done and self._idle_failures_in_row:
            self._log.info("handler_recovered", attempt_count=self._idle_failures_in_row + 1)
            self._idle_failures_in_row = 0
        context.note_state()

    async def deliver(
        self,
        events: Sequence[ReceivedEvent],
        context: CallContext,
        check: Callable[[ReceivedEvent], object] | None = None,
    ) -> None:
        """Call the handler with these events; return when each of them is handled or given up.

        Args:
            events: In order.
            context: The context that the handler receives.
            check: Called with each event before the handler; if it raises, the event has failed.

        Raises:
            PartitionStoppedError: the failure policy stops the partition.
            OwnershipLostError: the handler's checkpoint failed because the partition is lost.
        """
        pending = frozen(events)  # A handler might modify a list.
        retries = RetryState(halves=self._handler.takes_columns)
        while pending:
            part = next_part(pending, retries)
            if retries.cuts:  # A call failed, and the first one had all events.
                self._counters.retried_count += len(part)
            left = pending
            try:
                call = partial(self._process, context, part, check)
                outcome = await self._call(context, call, part)
            finally:  # Also of a call that was cancelled because the pump stops.
                pending = context.unhandled(left)
                self._counters.handled_count += len(left) - len(pending)
                self._meter.handled(left, pending)
            if outcome.is_done and retries.failures_in_row:
                self._log.info("handler_recovered", attempt_count=retries.failures_in_row + 1)
            if len(pending) < len(left):
                retries.note_progress()
            if outcome.error is not None:
                pending = await self._retry(
                    pending, outcome.error, outcome.report, retries, context
                )

    async def close(self, context: CallContext, reason: CloseReason, *, budget_s: float) -> None:
        """Call the handler's ``close`` for at most *budget_s* seconds; errors are only logged."""
        failure: BaseException | None = None
        scope = asyncio.timeout(budget_s)
        try:
            async with scope:
                await users_call(lambda: self._handler.close(context, reason), context.variables)
        except Exception as error:  # noqa: BLE001 - the user's code
            if scope.expired() and isinstance(error, TimeoutError):
                self._log.warning("handler_abandoned", after_s=budget_s)
            else:
                failure = error
        if failure is not None:
            self._log.warning(
                "handler_failed", attempt=1, error=error_text(failure), exc_info=failure
            )

    async def _process(
        self,
        context: CallContext,
        part: Sequence[ReceivedEvent],
        check: Callable[[ReceivedEvent], object] | None,
    ) -> None:
        if check is not None:
            for event in part:
                check(event)
        await self._handler.process_events(context, part)

    async def report_error(self, context: CallContext, error: Exception, attempt: int) -> None:
        """Call the handler's ``process_error``: with an error of its own or of the checkpoint."""
        outcome = await self._call(context, lambda: self._handler.process_error(context, error))
        if (second := outcome.error) is not None:
            log = self._log.warning if attempt == 1 else self._log.debug
            log("error_handler_failed", error=error_text(second), exc_info=second)

    async def give_up(self, event: ReceivedEvent, count: int, context: CallContext) -> None:
        """Give up an event without calling the handler, after *count* processes died with it."""
        await self._action(event, None, count)
        context.complete([event])

    async def _call(
        self,
        context: CallContext,
        call: Callable[[], Awaitable[None]],
        part: Sequence[ReceivedEvent] = (),
    ) -> Outcome:
        """Call the handler once, while the lease is trusted."""
        self._stop_scope.check()
        if self._is_refused(part):
            await self._until_allowed(is_delivery=bool(part))
        timeout, outcome = None, CANCELLED

        async def begin() -> None:
            # The call's task begins later than this one created it, and the process may have been
            # suspended between the two.
            if self._is_refused(part):
                raise _NotAllowedError
            await call()

        context.begin_call(part)
        clock = asyncio.get_running_loop().time
        try:
            async with self._stop_scope.calling() as timeout:
                self._meter.begin(clock())
                try:
                    await users_call(begin, context.variables)
                finally:
                    self._meter.end(clock())
            outcome = DONE
        except StoppedError:
            raise
        except _NotAllowedError:
            self._stop_scope.check()
        except OwnershipLostError:
            self._stop_scope.check()
            raise
        except Exception as raised:  # noqa: BLE001 - the one place around the user's code
            is_expired = timeout is not None and timeout.expired()
            is_cancelled = is_expired and isinstance(raised, TimeoutError)
            if is_expired and self._stop_scope.is_ending:
                self._log_cancelled(context.unhandled(part))
            self._stop_scope.check()
            if is_cancelled:
                self._log.warning("lease_expired")
            else:
                error = checked(raised, part, context.unfinished)
                outcome = Outcome(error=error, report=blamed(part, error, context.unhandled))
        finally:
            # This notes progress. Where a call failed and completed nothing, ``None`` undoes its
            # effect on the state.
            done = context.left_of(part) if outcome.is_done else outcome.report.done or None
            context.end_call(done)
        return outcome

    def _is_refused(self, part: Sequence[ReceivedEvent]) -> bool:
        """Whether no call may begin now: without trust in the lease, or with events in a pause."""
        if self._stop_scope.is_waiting_for_trust:
            return True
        return bool(part) and self._pause_switch.is_paused

    async def _until_allowed(self, *, is_delivery: bool) -> None:
        """Wait until the lease is trusted and, for a delivery, the partition is not paused."""
        while True:
            if is_delivery and self._pause_switch.is_paused:
                async with self._stop_scope.waiting():
                    await self._pause_switch.until_open()
            if not await self._stop_scope.until_trusted():
                return
            self._log.info("lease_recovered")  # It may have been paused meanwhile.

    def _log_cancelled(self, unhandled: Sequence[ReceivedEvent]) -> None:
        """Log that a stop cancelled a call, and which events will therefore be delivered again."""
        numbers = [event.sequence_number for event in unhandled]
        self._log.warning(
            "handler_cancelled", sequence_number=numbers[0] if numbers else None, count=len(numbers)
        )

    async def _retry(
        self,
        pending: Sequence[ReceivedEvent],
        error: Exception,
        report: FailureReport,
        retries: RetryState,
        context: CallContext,
    ) -> Sequence[ReceivedEvent]:
        """Report a failed call, then give events up or back off; return the events to try again."""
        self._counters.handler_error_count += 1
        wait = retries.note(report, self._policy.transient)
        only = next(iter(report.failed)) if len(report.failed) == 1 else None
        await self._report(context, shown_error(error), retries.failures_in_row, only)
        exhausted = retries.exhausted(context.unhandled(pending), self._policy.attempts_max)
        for event in exhausted:
            number = event.sequence_number
            last, count = retries.error_by_number[number], retries.attempt_by_number[number]
            await self._action(event, last, count)
            context.complete([event])
        pending = context.unhandled(pending)
        if not exhausted and pending and wait:
            await self._back_off(wait)
        return pending

    async def _report(
        self,
        context: CallContext,
        error: Exception,
        attempt: int,
        sequence_number: int | None = None,
    ) -> None:
        log = self._log.warning if attempt == 1 else self._log.debug
        log(
            "handler_failed",
            sequence_number=sequence_number,
            attempt=attempt,
            error=error_text(error),
            exc_info=error,
        )
        await self.report_error(context, error, attempt)

    async def _back_off(self, attempt: int) -> None:
        async with self._stop_scope.waiting():
            await asyncio.sleep(self._wait_s(attempt))
