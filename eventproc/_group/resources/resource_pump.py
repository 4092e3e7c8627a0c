"""Holds one resource: calls ``hold`` while the lease is trusted, and ends it in order.

Rule 1: ``hold`` never runs twice at a time, and only while the lease is trusted.
Rule 2: ``run`` returns when ``hold`` has ended. So a lease is handed over after that.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from eventproc._base.logs import Logger, error_text
from eventproc._base.tasks import end, users_call
from eventproc._core.ownership.pauses import Pause
from eventproc._core.placement.loads import WorkDone
from eventproc._group.pumps.pump import Grant
from eventproc._group.pumps.stop_scope import StoppedError
from eventproc._group.resources.config import ResourceProcessorConfig
from eventproc._group.resources.handler import HeldResource, ResourceHandler
from eventproc._group.resources.names import name_of
from eventproc.models import CloseReason
from eventproc.models._statistics import HoldCounters, ResourceStatistics

DRAIN_FRACTION: Final = 0.8
"""The part of the time to end that ``drain`` has. The rest is for ``hold``, which is cancelled."""


class HoldReturnedError(Exception):
    """``hold`` returned although the resource is still held. Only logged and counted."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """The calls of ``hold`` that ended by themselves, in a row."""

    count: int
    since_s: float
    """When the first of these calls began; if it had held for long, when it ended."""

    error: Exception
    """The newest one's."""


class ResourcePump:
    """Holds one resource from claim to end."""

    is_paused = False
    has_unstored_progress = False

    def __init__(
        self,
        grant: Grant,
        handler: ResourceHandler,
        *,
        config: ResourceProcessorConfig,
        wait_s: Callable[[int], float],
        log: Logger,
    ) -> None:
        """Prepare; *wait_s* returns the seconds to wait after the n-th failure in a row."""
        self._ready = grant.ready
        self._handler = handler
        self._config = config
        self._wait_s = wait_s
        self._log = log
        self._stop_scope = grant.stop
        self._held = HeldResource(
            name_of(grant.name),
            epoch=grant.epoch,
            owner_id=grant.member.owner_id,
            remaining_s=grant.stop.remaining_s,
        )
        self.counters = HoldCounters()
        """The live counters; they change while the pump runs."""

        self._holding_since_s: float | None = None
        """When the call of ``hold`` that is under way began."""

        self._draining: asyncio.Task[None] | None = None
        self._overdue: asyncio.TimerHandle | None = None
        self._failure: _Failure | None = None

    @property
    def work(self) -> WorkDone:
        """Nothing: the work of holding a resource is not measured."""
        return WorkDone(busy=0.0, events=0, bytes=0)

    @property
    def is_lost(self) -> bool:
        """Whether another processor holds the resource."""
        return self._stop_scope.is_lost

    def statistics(self) -> ResourceStatistics:
        """Return a snapshot."""
        now_s = asyncio.get_running_loop().time()
        if self._holding_since_s is not None:
            self._note_success(self._holding_since_s, now_s)
        failure = self._failure
        return ResourceStatistics(
            name=self._held.name,
            epoch=self._held.epoch,
            is_trusted=self._held.is_held,
            failing_seconds=0.0 if failure is None else now_s - failure.since_s,
            error=None if failure is None else error_text(failure.error),
            counters=self.counters.copy(),
        )

    def end(self, reason: CloseReason, *, within: timedelta | None = None) -> None:
        """Call ``drain``, then cancel ``hold``, within the time."""
        if self._stop_scope.reason is not None:
            return
        budget = within or self._config.shutdown_timeout
        self._stop_scope.end(reason, call_budget=budget)
        self._watch_end(budget)
        if self._holding_since_s is not None:
            self._draining = asyncio.create_task(self._drain(reason, budget * DRAIN_FRACTION))

    def lose(self) -> None:
        """Cancel ``hold`` at once: another processor has the lease."""
        self._stop_scope.lose()
        self._watch_end(self._config.handoff_timeout)

    def pause(self) -> None:
        """Do nothing: a resource is held, or it is not."""

    def resume(self) -> None:
        """Do nothing."""

    def follow(self, pause: Pause | None) -> None:
        """Do nothing: no group of resources is paused."""

    async def run(self) -> CloseReason:
        """Hold the resource until ``end`` or ``lose``; return why it ended."""
        self._log.info("resource_taken", epoch=self._held.epoch)
        try:
            with self._stop_scope.waiting():
                await self._ready()
            while True:
                await self._stop_scope.until_trusted()
                await self._hold()
        except StoppedError:
            pass
        finally:
            if self._draining is not None:
                await end([self._draining])
            self._stop_scope.finish()
            if self._overdue is not None:
                self._overdue.cancel()
        reason = self._stop_scope.conclude()
        self._log.info("resource_let_go", reason=reason.value, epoch=self._held.epoch)
        return reason

    async def _hold(self) -> None:
        """Call ``hold`` once; after a failure, wait before it is called again."""
        began_s = self._holding_since_s = asyncio.get_running_loop().time()
        self.counters.hold_count += 1
        error: Exception = HoldReturnedError("hold returned although the resource is still held")
        try:
            with suppress(TimeoutError):
                async with self._stop_scope.calling() as call:
                    error = await self._outcome() or error
        finally:
            self._holding_since_s = None
        self._stop_scope.check()
        if call.expired():
            self.counters.suspended_count += 1
            self._log.warning("hold_suspended")
            self._failure = None  # Nothing failed while the store was out.
            return
        failure_count = self._note_failure(error, began_s)
        with self._stop_scope.waiting():
            await asyncio.sleep(self._wait_s(failure_count))

    async def _outcome(self) -> Exception | None:
        """Call ``hold``; return the error that it raised."""

        async def hold() -> None:
            # This task began later than its caller created it, and the process may have been
            # suspended between the two.
            await self._stop_scope.until_trusted()
            await self._handler.hold(self._held)

        try:
            await users_call(hold)
        except Exception as raised:  # noqa: BLE001 - the user's code
            return raised
        return None

    def _note_success(self, began_s: float, now_s: float) -> bool:
        """Forget earlier failures if the call that began then has lasted for long enough.

        Returns whether it has.
        """
        has_lasted = now_s - began_s >= self._config.handler_backoff.maximum.total_seconds()
        if has_lasted:
            self._failure = None
        return has_lasted

    def _note_failure(self, error: Exception, began_s: float) -> int:
        """Count a call that ended by itself; after ``failover_timeout``, let the resource go.

        Returns how many have failed in a row.
        """
        now_s = asyncio.get_running_loop().time()
        since_s = now_s if self._note_success(began_s, now_s) else began_s
        self.counters.hold_error_count += 1
        former = self._failure or _Failure(0, since_s, error)
        failure = self._failure = replace(former, count=former.count + 1, error=error)
        log = self._log.error if failure.count == 1 else self._log.warning
        has_returned = isinstance(error, HoldReturnedError)
        log(
            "hold_failed",
            error=error_text(error),
            failure_count=failure.count,
            exc_info=None if has_returned else error,
        )
        limit = self._config.failover_timeout
        if limit is not None and now_s - failure.since_s >= limit.total_seconds():
            self._stop_scope.abort(CloseReason.STALLED)
            raise StoppedError
        return failure.count

    async def _drain(self, reason: CloseReason, within: timedelta) -> None:
        """Call ``drain``, then cancel ``hold``."""
        limit = asyncio.timeout(within.total_seconds())
        try:
            async with limit:
                await users_call(lambda: self._handler.drain(self._held))
        except Exception as error:  # noqa: BLE001 - the user's code
            timed_out = limit.expired()
            what = "the time was over" if timed_out else error_text(error)
            self._log.warning("drain_failed", error=what, exc_info=None if timed_out else error)
        finally:
            self._stop_scope.abort(reason)

    def _watch_end(self, within: timedelta) -> None:
        """Log if ``hold`` has not ended in time: it does not react to its cancellation."""
        if self._overdue is None and self._holding_since_s is not None:
            self._overdue = asyncio.get_running_loop().call_later(
                within.total_seconds(),
                lambda: self._log.error("hold_overdue", after_s=within.total_seconds()),
            )
