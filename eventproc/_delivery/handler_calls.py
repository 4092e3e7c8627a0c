"""Calls the handler until each event is done: handled, or given up.

Rule 1: the handler is called only while the lease is trusted. A call that lasts longer than the
trust is cancelled; when the lease is renewed, the call's events are delivered again.
Rule 2: after a failed call the handler is called again with the events that are not handled yet.
Rule 3: progress is noted after the handler returned or called ``done``, never before.
Rule 4: while the partition is paused, no call with events begins: what was received waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from eventproc._base.logs import error_text
from eventproc._base.tasks import is_cancelled, users_call
from eventproc._core.delivery.failure import FailureReport, RetryState, next_part
from eventproc._core.delivery.window import frozen
from eventproc._delivery.blame import blamed, checked, shown_error
from eventproc._delivery.call_context import CallContext, FailuresInRow
from eventproc._delivery.config import FailurePolicy
from eventproc._delivery.context import LiveContext
from eventproc._delivery.flow_control import PauseSwitch
from eventproc._delivery.handler import PartitionHandler
from eventproc._delivery.scope import CallReport, PartitionScope
from eventproc.errors import HandlerAbortedError, HandlerCancelledError, OwnershipLostError
from eventproc.models import CloseReason, ReceivedEvent


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one call: it succeeded, it failed, or (neither) it was cancelled."""

    is_done: bool = False
    error: Exception | None = None
    report: FailureReport = field(default_factory=FailureReport)
    """Which events are known to have failed."""


def is_cancellation(outcome: Outcome) -> bool:
    """Whether the call failed because it was cancelled, by its own code or from outside."""
    error = outcome.error
    return error is not None and isinstance(shown_error(error), HandlerCancelledError)


GiveUp: TypeAlias = Callable[[ReceivedEvent, Exception | None, int], Awaitable[None]]
"""Gets an event, its last error (``None``: processes died with it) and the number of attempts, and
returns when the position may move past the event."""

DONE: Final = Outcome(is_done=True)
CANCELLED: Final = Outcome()


Call: TypeAlias = Callable[[CallContext, Sequence[ReceivedEvent]], Awaitable[None]]
"""Calls the user's code with a context and the events of the call."""


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
        report: CallReport | None = None,
    ) -> None:
        """Prepare the calls.

        Args:
            handler: The user's handler.
            policy: When an event is given up.
            action: Does what the policy says with an event that is given up.
            scope: Ends calls and waits when the pump stops; has the counters and the log.
            wait_s: Seconds to wait after the n-th failure in a row.
            pause_switch: Holds events back while the partition is paused; none: it never is.
            report: Told of the beginning and end of each call with events.
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
        self._reported = report or CallReport()
        self._clock = asyncio.get_running_loop().time
        self._idle_failures = FailuresInRow()

    async def initialize(self, context: CallContext) -> None:
        """Call the handler's ``initialize`` until it succeeds."""
        failures = context.failures
        while True:
            outcome = await self._call(context, lambda *_: self._handler.initialize(context))
            if outcome.is_done:
                self._log_recovery(failures)
                return
            if outcome.error is not None:
                await self._report(context, outcome.error, failures)
                await self._back_off(failures.count)

    async def idle(self, context: LiveContext) -> None:
        """Call the handler's ``on_idle``; a state that it sets is stored."""
        outcome = await self._call(context, lambda *_: self._handler.on_idle(context))
        if outcome.error is not None:
            await self._report(context, outcome.error, self._idle_failures)
        elif outcome.is_done:
            self._log_recovery(self._idle_failures)
        context.note_state()

    def call_once(
        self,
        events: Sequence[ReceivedEvent],
        context: CallContext,
        check: Callable[[ReceivedEvent], object] | None = None,
    ) -> Coroutine[Any, Any, Outcome]:
        """Make the first call of ``deliver`` in this task, which the context has entered.

        If it did not succeed, ``deliver`` goes on after it, in another task.

        Raises:
            OwnershipLostError: the handler's checkpoint failed because the partition is lost.
        """
        call = self._handler.process_events if check is None else self._checked(check)
        return self._call_here(context, call, events)

    async def deliver(
        self,
        events: Sequence[ReceivedEvent],
        context: CallContext,
        check: Callable[[ReceivedEvent], object] | None = None,
        first: Outcome | None = None,
    ) -> None:
        """Call the handler with these events; return when each of them is handled or given up.

        Args:
            events: In order.
            context: The context that the handler receives.
            check: Called with each event before the handler; if it raises, the event has failed.
            first: The outcome of the first call, if that was made.

        Raises:
            PartitionStoppedError: the failure policy stops the partition.
            OwnershipLostError: the handler's checkpoint failed because the partition is lost.
        """
        pending = frozen(events)  # A handler might modify a list.
        retries = RetryState(halves=self._handler.takes_columns)
        failures = context.failures = FailuresInRow()
        call = self._handler.process_events if check is None else self._checked(check)
        while pending:
            part = next_part(pending, retries)
            if retries.cuts:  # A call failed, and the first one had all events.
                self._counters.retried_count += len(part)
            left = pending
            try:
                outcome = first or await self._call(context, call, part)
                if outcome.is_done:
                    left = left[len(part) :]
            finally:  # Also of a call that was cancelled because the pump stops.
                pending = context.unhandled(left)
                self._note_handled(left, pending)
            first = None
            if outcome.is_done:
                self._log_recovery(failures)
            if outcome.is_done or len(pending) < len(left):
                failures.count = 0
                retries.note_progress()
            if outcome.error is not None:
                pending = await self._retry(
                    pending, outcome.error, outcome.report, retries, context
                )
        context.failures = FailuresInRow()

    def _log_recovery(self, failures: FailuresInRow) -> None:
        if failures.count:
            self._log.info("handler_recovered", attempt_count=failures.count + 1)
            failures.count = 0

    def _note_handled(self, before: Sequence[ReceivedEvent], left: Sequence[ReceivedEvent]) -> None:
        """Count the events of *before* that are not *left*."""
        self._counters.handled_count += len(before) - len(left)
        self._meter.handled(before, left)

    def _checked(self, check: Callable[[ReceivedEvent], object]) -> Call:
        """Return the call with events, and with a check of each before it."""

        async def process(context: CallContext, part: Sequence[ReceivedEvent]) -> None:
            for event in part:
                check(event)
            await self._handler.process_events(context, part)

        return process

    async def close(self, context: CallContext, reason: CloseReason, *, budget_s: float) -> None:
        """Call the handler's ``close`` for at most *budget_s* seconds; errors are only logged.

        As with each call, what one that failed or was abandoned did to the state is undone.
        """
        error: BaseException | None = None
        scope = asyncio.timeout(budget_s)
        context.begin_call()
        try:
            async with scope:
                await users_call(lambda: self._handler.close(context, reason), context.variables)
        except BaseException as raised:
            error = raised
            if not isinstance(raised, Exception):
                raise
        finally:
            context.end_call(() if error is None else None)
        if scope.expired() and isinstance(error, TimeoutError):
            self._log.warning("handler_abandoned", after_s=budget_s)
        elif error is not None:
            self._log.warning("handler_failed", attempt=1, error=error_text(error), exc_info=error)

    async def report_error(self, context: CallContext, error: Exception, attempt: int) -> None:
        """Call the handler's ``process_error``: with an error of its own or of the checkpoint."""
        outcome = await self._call(context, lambda *_: self._handler.process_error(context, error))
        if (second := outcome.error) is not None:
            log = self._log.warning if attempt == 1 else self._log.debug
            log("error_handler_failed", error=error_text(second), exc_info=second)

    async def give_up(self, event: ReceivedEvent, count: int, context: CallContext) -> None:
        """Give up an event without calling the handler, after *count* processes died with it."""
        await self._action(event, None, count)
        context.complete([event])

    async def _call(
        self, context: CallContext, call: Call, part: Sequence[ReceivedEvent] = ()
    ) -> Outcome:
        """Call the handler once, while the lease is trusted, in a task of its own.

        So code that cancels its own task is not taken for a cancellation of this one. If this task
        is cancelled, the call is too, and its end is awaited.

        Raises:
            StoppedError: the pump stops.
            OwnershipLostError: the handler's checkpoint failed because the partition is lost.
        """
        self._stop_scope.check()
        if self._is_refused(part):
            await self._until_allowed(is_delivery=bool(part))
        calling = self._call_in_task(context, call, part, asyncio.current_task())
        outcome = await asyncio.get_running_loop().create_task(calling, context=context.variables)
        if is_cancelled():
            raise asyncio.CancelledError
        if outcome is CANCELLED:
            self._stop_scope.check()
        return outcome

    async def _call_in_task(
        self,
        context: CallContext,
        call: Call,
        part: Sequence[ReceivedEvent],
        caller: asyncio.Task[Any] | None,
    ) -> Outcome:
        context.enter(caller)
        return await self._call_here(context, call, part)

    async def _call_here(
        self, context: CallContext, call: Call, part: Sequence[ReceivedEvent]
    ) -> Outcome:
        # The task begins later than it was created, and the process may have been suspended between
        # the two.
        if self._stop_scope.reason is not None or self._is_refused(part):
            return CANCELLED
        error: BaseException | None = None
        begun = None
        task = context.task
        began_s = self._clock()
        context.begin_call(part, began_s)
        self._stop_scope.begin_call(context)
        self._meter.begin(began_s)
        try:
            if part:
                begun = self._reported.begin(part)
            await call(context, part)
            if task is not None and task.cancelling():
                await asyncio.sleep(0)  # The code may have cancelled it and not awaited anything.
        except BaseException as raised:  # noqa: BLE001 - the one place around the user's code
            error = raised
        ended_s = self._clock()
        if part:
            self._reported.end(begun, ended_s - began_s, error)
        self._meter.end(ended_s)
        self._stop_scope.end_call(context)
        if error is None and context.is_interrupted:  # What it was to do may be half done.
            error = asyncio.CancelledError()
        if error is None:
            context.end_call(context.left_of(part))  # This notes progress.
            self._note_handled(part, ())
            return DONE
        outcome = self._outcome(error, context, part)
        # Where a call failed and completed nothing, ``None`` undoes its effect on the state.
        context.end_call(outcome.report.done or None)
        if isinstance(outcome.error, OwnershipLostError):
            raise outcome.error
        return outcome

    def _outcome(
        self, error: BaseException, context: CallContext, part: Sequence[ReceivedEvent]
    ) -> Outcome:
        """Return what it means that a call raised this."""
        if isinstance(error, KeyboardInterrupt):  # It is the user's, and ends the program.
            asyncio.get_running_loop().call_soon(_raise, error)
            error = asyncio.CancelledError()
        if context.is_expired and self._stop_scope.is_ending:
            self._log_cancelled(context.unhandled(part))
        is_cut_off = context.is_interrupted or not isinstance(error, Exception)
        if self._stop_scope.reason is not None and (is_cut_off or self._stop_scope.is_lost):
            return CANCELLED
        if context.is_interrupted and (
            not isinstance(error, Exception) or isinstance(error, TimeoutError)
        ):
            if context.is_expired:
                self._log.warning("lease_expired")
            return CANCELLED
        if isinstance(error, asyncio.CancelledError):
            error = HandlerCancelledError(error)
        elif not isinstance(error, Exception):
            error = HandlerAbortedError(error)
        error = checked(error, part, context.unfinished)
        return Outcome(error=error, report=blamed(part, error, context.unhandled))

    def _is_refused(self, part: Sequence[ReceivedEvent]) -> bool:
        """Whether no call may begin now: without trust in the lease, or with events in a pause."""
        if self._stop_scope.is_waiting_for_trust:
            return True
        return bool(part) and self._pause_switch.is_paused

    async def _until_allowed(self, *, is_delivery: bool) -> None:
        """Wait until the lease is trusted and, for a delivery, the partition is not paused."""
        while True:
            if is_delivery and self._pause_switch.is_paused:
                with self._stop_scope.waiting():
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
        await self._report(context, shown_error(error), context.failures, only)
        exhausted = retries.exhausted(context.unhandled(pending), self._policy.attempts_max)
        for event in exhausted:
            number = event.sequence_number
            last, count = retries.error_by_number[number], retries.attempt_by_number[number]
            context.failures.given_up = number
            await self._action(event, last, count)
            context.complete([event])
        context.failures.given_up = None
        pending = context.unhandled(pending)
        if not exhausted and pending and wait:
            await self._back_off(wait)
        return pending

    async def _report(
        self,
        context: CallContext,
        error: Exception,
        failures: FailuresInRow,
        sequence_number: int | None = None,
    ) -> None:
        text, now_s = error_text(error), self._clock()
        log = self._log.warning if failures.note(text, now_s) else self._log.debug
        log(
            "handler_failed",
            sequence_number=sequence_number,
            attempt=failures.count,
            failing_s=round(now_s - failures.since_s, 3) or None,
            error=text,
            exc_info=error,
        )
        await self.report_error(context, error, failures.count)

    async def _back_off(self, attempt: int) -> None:
        with self._stop_scope.waiting():
            await asyncio.sleep(self._wait_s(attempt))


def _raise(error: BaseException) -> None:
    raise error
