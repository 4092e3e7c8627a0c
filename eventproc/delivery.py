"""Handing events to the handler until all of them are done: handled, or given up.

Rule 1: nothing is given to the handler unless the lease is trusted at that moment. A call that
outlives the trust is cancelled; when the lease is renewed, its events come again.
Rule 2: a handler that fails is called again in place, with what is not handled yet.
Rule 3: progress is noted after the handler returned or said so, never before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from eventproc.config import FailurePolicy
from eventproc.context import CallContext, LiveContext
from eventproc.core.failure import Blame, Trial, blame, next_part
from eventproc.ending import EndedError, Ending, is_cancelled
from eventproc.errors import HandlerCancelledError, OwnershipLostError
from eventproc.giving_up import GivingUp
from eventproc.handler import BatchError, PartitionHandler
from eventproc.logs import Logger, shown
from eventproc.models import CloseReason, ReceivedEvent
from eventproc.statistics import Tally


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call: it succeeded, it failed, or (neither) it was cut off."""

    is_done: bool = False
    error: Exception | None = None


DONE: Final = Outcome(is_done=True)
CUT: Final = Outcome()


@dataclass(slots=True)
class Run:
    """Events on their way through the handler."""

    events: Sequence[ReceivedEvent]
    pending: Sequence[ReceivedEvent]
    trial: Trial = field(default_factory=Trial)
    failures_in_row: int = 0
    is_held: bool = False
    """Events are done behind one that is not, so nothing is completed before all of them are."""

    def settle(self, done: Collection[ReceivedEvent], context: CallContext) -> None:
        """These events are done, in whatever way."""
        if done is self.pending and not self.is_held:
            self.pending = ()
            context.complete(self.events[-len(done) :])
            return
        numbers = {event.sequence_number for event in done}
        self.trial.forget(numbers)
        self.pending = [e for e in self.pending if e.sequence_number not in numbers]
        if self.pending and max(numbers) > self.pending[0].sequence_number:
            self.is_held = True
            context.hold()
        if not self.is_held:
            context.complete([e for e in self.events if e.sequence_number in numbers])
        elif not self.pending:
            context.complete(self.events)


class Delivery:
    """Calls the handler of one partition; with key lanes, for several runs at once."""

    def __init__(
        self,
        handler: PartitionHandler,
        *,
        policy: FailurePolicy,
        giving_up: GivingUp,
        ending: Ending,
        wait_s: Callable[[int], float],
        tally: Tally,
        log: Logger,
    ) -> None:
        self._handler = handler
        self._policy = policy
        self._giving_up = giving_up
        self._ending = ending
        self._wait_s = wait_s
        self._tally = tally
        self._log = log
        self._idle_failures_in_row = 0

    async def initialize(self, context: CallContext) -> None:
        """Let the handler get ready; tried again until it is."""
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
        """Tell the handler that nothing came; what it does to the state is kept."""
        outcome = await self._call(context, lambda: self._handler.process_idle(context))
        if outcome.error is not None:
            self._idle_failures_in_row += 1
            await self._report(context, outcome.error, self._idle_failures_in_row)
        elif outcome.is_done and self._idle_failures_in_row:
            self._log.info("handler_recovered", attempt_count=self._idle_failures_in_row + 1)
            self._idle_failures_in_row = 0
        context.note()

    async def hand(
        self,
        events: Sequence[ReceivedEvent],
        context: CallContext,
        check: Callable[[ReceivedEvent], object] | None = None,
    ) -> None:
        """Return when every one of these events is done.

        Args:
            events: In order.
            context: What the handler is given with them.
            check: Raises where an event cannot be handed over: that counts as its failure.

        Raises:
            GivenUpError: the failure policy stops the partition.
            OwnershipLostError: the handler found out that the partition is lost.
        """
        events = tuple(events)  # Some handler may want to empty a list.
        run = Run(events, events)
        while run.pending:
            part = next_part(run.pending, run.trial.alone)
            if run.failures_in_row:
                self._tally.retried_count += len(part)
            outcome = await self._call(context, partial(self._process, context, part, check), part)
            if outcome.is_done:
                self._tally.handled_count += len(part)
                if run.failures_in_row:
                    self._log.info("handler_recovered", attempt_count=run.failures_in_row + 1)
                    run.failures_in_row = 0
                run.settle(part, context)
            else:
                self._note_done(run, part, Blame(failed={}), context)
                if outcome.error is not None:
                    await self._failed(run, part, outcome.error, context)

    async def close(self, context: LiveContext, reason: CloseReason, *, budget_s: float) -> None:
        """Let the handler end, whatever it makes of that."""
        failure: BaseException | None = None
        try:
            async with asyncio.timeout(budget_s):
                await self._handler.close(context, reason)
        except TimeoutError:
            self._log.warning("handler_abandoned", after_s=budget_s)
        except asyncio.CancelledError as stray:
            if is_cancelled():
                raise
            failure = HandlerCancelledError(stray)
        except Exception as error:  # noqa: BLE001 - the user's code
            failure = error
        if failure is not None:
            self._log.warning("handler_failed", attempt=1, error=shown(failure), exc_info=failure)

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

    async def give_up(self, event: ReceivedEvent, count: int, context: CallContext) -> None:
        """Give up an event without calling the handler: too many processes died of it."""
        await self._giving_up.settle(event, None, count)
        context.complete([event])

    async def _call(
        self,
        context: CallContext,
        call: Callable[[], Awaitable[None]],
        part: Sequence[ReceivedEvent] = (),
    ) -> Outcome:
        """Call the handler once, under a trusted lease."""
        if await self._ending.until_trusted():
            self._log.info("lease_regained")
        cut, outcome = None, CUT
        context.begin_call()
        try:
            async with self._ending.calling() as cut:
                await call()
            outcome = DONE
        except EndedError:
            raise
        except asyncio.CancelledError as stray:
            if is_cancelled():
                raise
            self._ending.check()
            outcome = Outcome(error=HandlerCancelledError(stray))
        except OwnershipLostError:
            self._ending.check()
            raise
        except Exception as raised:  # noqa: BLE001 - the one place around the user's code
            self._ending.check()
            if cut is not None and cut.expired() and isinstance(raised, TimeoutError):
                self._log.warning("lease_lapsed")
            else:
                outcome = Outcome(error=raised)
        finally:
            tells_more = bool(_blame(part, outcome.error, context).done) if outcome.error else False
            context.end_call(keeps_state=outcome.is_done or tells_more)
        return outcome

    async def _failed(
        self, run: Run, part: Sequence[ReceivedEvent], error: Exception, context: CallContext
    ) -> None:
        """Find out whom to blame, tell the handler, and give up or wait."""
        pending = {event.sequence_number for event in run.pending}
        part = [event for event in part if event.sequence_number in pending]
        verdict = _blame(part, error, context)
        self._note_done(run, part, verdict, context)
        self._tally.handler_error_count += 1
        run.failures_in_row += 1
        run.trial.note(verdict, self._policy.transient)
        shown = error.shown if isinstance(error, BatchError) else error
        await self._report(context, shown, run.failures_in_row)
        exhausted = run.trial.exhausted(self._policy.attempts_max)
        for event in [e for e in run.pending if e.sequence_number in exhausted]:
            number = event.sequence_number
            last, count = run.trial.error_by_number[number], run.trial.attempt_by_number[number]
            await self._giving_up.settle(event, last, count)
            run.settle([event], context)
        if not exhausted and run.pending:
            await self._back_off(run.failures_in_row)

    def _note_done(
        self, run: Run, part: Sequence[ReceivedEvent], verdict: Blame, context: CallContext
    ) -> None:
        """Take out of the run what the call got done although it did not succeed."""
        done = [
            event
            for event in part
            if event.sequence_number in verdict.done or not context.is_unhandled(event)
        ]
        if done:
            self._tally.handled_count += len(done)
            run.failures_in_row = 0
            run.settle(done, context)

    async def _report(self, context: CallContext, error: Exception, attempt: int) -> None:
        log = self._log.warning if attempt == 1 else self._log.debug
        log("handler_failed", attempt=attempt, error=shown(error), exc_info=error)
        outcome = await self._call(context, lambda: self._handler.process_error(context, error))
        if (second := outcome.error) is not None:
            log("error_handler_failed", error=shown(second), exc_info=second)

    async def _back_off(self, attempt: int) -> None:
        async with self._ending.waiting():
            await asyncio.sleep(self._wait_s(attempt))


def _blame(part: Sequence[ReceivedEvent], error: Exception, context: CallContext) -> Blame:
    """Judge a failed call by what it said: named events, or nothing but that it failed."""
    left = {e.sequence_number: e for e in part if context.is_unhandled(e)}
    if isinstance(error, BatchError):
        failed = {e.sequence_number: why for e, why in error.failed if e.sequence_number in left}
        untried = {event.sequence_number for event in error.untried}
        if failed:
            return Blame(failed=failed, done=frozenset(left.keys() - failed.keys() - untried))
    return blame(list(left.values()), error)
