"""Notices a partition that has work and completes none of it for ``stall_timeout``."""

import asyncio
from math import inf
from typing import Final

from eventproc._core.delivery.stall import Condition, StallStep, stall_step
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.delivery import Delivery
from eventproc._delivery.flow_control import PauseSwitch
from eventproc._delivery.reader import PartitionReader
from eventproc._delivery.scope import PartitionScope
from eventproc._group.pumps.stop_scope import StoppedError
from eventproc.models import CloseReason, SequenceRange

CHECKS_PER_TIMEOUT: Final = 8
"""Checks in one time-out: a stall is noticed at most an eighth of the time-out late."""


class Watchdog:
    """Checks one pump periodically; reports a stall, and with a time-out for it stops the pump."""

    def __init__(
        self,
        config: EventProcessorConfig,
        *,
        delivery: Delivery,
        reader: PartitionReader,
        scope: PartitionScope,
        pause_switch: PauseSwitch,
    ) -> None:
        """Create the watchdog of one pump; ``watch`` runs it.

        Args:
            config: Has ``stall_timeout`` and ``failover_timeout``.
            delivery: Knows what it waits for, and which calls are under way.
            reader: Knows whether the hub has more events; its link is opened again.
            scope: Knows when there was progress; ends the pump after ``failover_timeout``.
            pause_switch: Knows whether the partition is paused.
        """
        limits = [t for t in (config.stall_timeout, config.failover_timeout) if t is not None]
        self._timeout_s = min(limits).total_seconds() if limits else inf
        failover = config.failover_timeout
        self._failover_s = None if failover is None else failover.total_seconds()
        self._reader = reader
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._log = scope.log
        self._progress = scope.progress
        self._delivery = delivery
        self._lanes = delivery.lanes
        self._pause_switch = pause_switch
        self._clock = asyncio.get_running_loop().time
        self._since_s = self._progress.at_s = self._clock()
        """Until then there was nothing to do, or the partition was held back."""

        self._was_reopened = False
        self._is_reported = False

        self.stalled_at: int | None = None
        """The first unhandled event of the call that stalls, as it was reported."""

    @property
    def is_stalled(self) -> bool:
        """Whether there is a stall. May be read from another thread, while the loop is blocked."""
        return self._is_reported or (self.call_s or 0.0) >= self._timeout_s

    @property
    def call_s(self) -> float | None:
        """For how many seconds a call has completed nothing; ``None`` if none is under way."""
        busy_since_s = self._lanes.busy_since_s
        return None if busy_since_s is None else self._clock() - busy_since_s

    @property
    def progress_age_s(self) -> float:
        """Seconds since an event was completed, or received for the first time."""
        return self._clock() - self._progress.at_s

    @property
    def handler_error(self) -> str | None:
        """How often and why the handler has failed in a row; ``None``: the last call did not."""
        failing = [c.failures for c in self._lanes.contexts if c.failures.count]
        if not failing:
            return None
        worst = min(failing, key=lambda failures: failures.since_s)
        if worst.given_up is not None:
            return f"event {worst.given_up} is given up, but could not be stored as dead letter"
        times = "once" if worst.count == 1 else f"{worst.count} times in a row"
        lasted_s = self._clock() - worst.since_s
        return f"the handler has failed {times} for {lasted_s:.0f} s: {worst.error}"

    async def watch(self) -> None:
        """Check until the pump ends."""
        if self._timeout_s == inf:
            return
        try:
            while True:
                with self._stop_scope.waiting():
                    await asyncio.sleep(self._timeout_s / CHECKS_PER_TIMEOUT)
                await self._check()
        except StoppedError:
            return

    def _idle_s(self) -> float:
        return self._clock() - max(self._since_s, self._progress.at_s)

    def _is_held_back(self) -> bool:
        """Whether delivery waits on purpose: a pause, a rate limit, a batch, the lease."""
        return (
            self._pause_switch.is_paused
            or self._delivery.is_throttled
            or self._reader.link.is_gathering
            or self._stop_scope.is_waiting_for_trust
        )

    async def _check(self) -> None:
        if self._is_held_back():
            self._since_s = self._clock()
        has_more = (
            self._idle_s() >= self._timeout_s
            and not self._delivery.is_delivering
            and await self._reader.has_more()
        )
        # Read after the hub has answered: events may have come meanwhile.
        idle_s, is_delivering = self._idle_s(), self._delivery.is_delivering
        condition = Condition(
            idle_s=idle_s,
            call_s=self.call_s,
            has_work=has_more or is_delivering or not self._lanes.is_idle,
            is_starved=has_more and not is_delivering,
            is_held_back=self._is_held_back(),
            failing_s=self._reader.link.failures.failing_s,
            is_reported=self._is_reported,
            was_reopened=self._was_reopened,
        )
        if idle_s >= self._timeout_s and not condition.has_work:
            self._since_s = self._clock()  # It waits for new events, which is no stall.
        self._do(stall_step(condition, self._timeout_s, self._failover_s), condition)

    def _do(self, step: StallStep, condition: Condition) -> None:
        is_new = not self._is_reported
        self._is_reported = step is not StallStep.NOTHING
        self._counters.stall_count += is_new and self._is_reported
        match step:
            case StallStep.NOTHING:
                self._was_reopened = False
                self.stalled_at = None
                if not is_new:
                    self._log.info("stall_recovered")
            case StallStep.REPORT | StallStep.REOPEN:
                is_reopened = self._was_reopened = step is StallStep.REOPEN
                if is_new:
                    facts = self._facts(condition)
                    self.stalled_at = self._first_unhandled()
                    self._log.warning("stall_detected", **facts, is_reopened=is_reopened)
                if is_reopened:
                    self._reader.link.restart()
            case StallStep.ABANDON:
                self._log.error("partition_abandoned", **self._facts(condition))
                self._stop_scope.abort(CloseReason.STALLED)
            case StallStep.WAIT:
                pass

    def _first_unhandled(self) -> int | None:
        unhandled = self._lanes.unhandled_range
        return None if unhandled is None else unhandled.first

    def _facts(self, condition: Condition) -> dict[str, float | str | None]:
        """Return for how long nothing was completed, where in the partition, and why."""
        call_s, unhandled = condition.call_s, self._lanes.unhandled_range
        return {
            "reason": self._reason(condition, unhandled),
            "idle_s": round(condition.idle_s, 3),
            "call_s": None if call_s is None else round(call_s, 3),
            "receiver_failing_s": round(condition.failing_s, 3) or None,
            "after_sequence_number": self._lanes.contexts[0].sequence_number,
            "sequence_number": self._first_unhandled(),
            "last_sequence_number": None if unhandled is None else unhandled.last,
        }

    def _reason(self, condition: Condition, unhandled: SequenceRange | None) -> str:
        """Return what the partition waits for, in words."""
        call_s = condition.call_s or 0.0
        if call_s >= self._timeout_s:
            return f"the handler has not returned for {call_s:.0f} s{_called_with(unhandled)}"
        if (handler_error := self.handler_error) is not None:
            return handler_error
        if condition.failing_s:
            error = self._reader.link.failures.error
            return f"nothing can be received for {condition.failing_s:.0f} s: {error}"
        if condition.is_starved:
            return "the hub has more events, and the receiver returns none"
        return "events were received, and no call with them is under way"


def _called_with(unhandled: SequenceRange | None) -> str:
    if unhandled is None:
        return ", called without events"
    if unhandled.first == unhandled.last:
        return f", called with event {unhandled.first}"
    return f", called with events {unhandled.first} to {unhandled.last}"
