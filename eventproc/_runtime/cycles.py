"""When the next cycle of load balancing begins, and the figures of those that were run.

``ProcessorRun.repeat_cycles`` runs them; ``Balancer.cycle`` is one.
"""

import asyncio
from contextlib import suppress
from typing import Final

from eventproc._base.logs import ConditionLogger
from eventproc._base.retries import Backoff, waits
from eventproc._core.ownership.cycle import Actions
from eventproc._group.balancer import CycleResult
from eventproc._runtime.parts import MemberParts
from eventproc.errors import StoreError

JITTER: Final = 0.1
"""The part of an interval by which cycles vary, so that processors do not read in step."""

PAUSE_MIN_S: Final = 0.02
"""The shortest pause between two cycles, so that frequent changes cause no busy loop."""


class Cycles:
    """Times and counts the cycles of one run. The counts can still be read after the run."""

    def __init__(self, parts: MemberParts) -> None:
        """Create it on the loop of the run."""
        config = parts.config
        self._parts = parts
        self._wake = asyncio.Event()
        self._acts_in_s = 0.0
        """In how many seconds a poll lets this processor act, and no other has to poll before; or
        0."""

        self._store_failure = ConditionLogger(parts.log, "store_failed", "store_recovered")
        self._store_wait_s = waits(
            Backoff(initial=config.rebalance_interval, maximum=config.load_balancing_interval),
            parts.rng,
        )
        self.is_balanced = False
        self.unplaced_count = self.count = self.claim_count = self.steal_count = 0
        self.conflict_count = 0
        """How many claims failed because another processor wrote first."""

        self.seconds = 0.0
        """The duration of the newest one."""

        self.store_error: str | None = None

    def wake(self) -> None:
        """Begin the next cycle now: something has changed."""
        self._wake.set()

    def begin(self) -> None:
        """Note that a cycle begins: what changes from now on needs another one."""
        self._wake.clear()

    async def wait_for_next(self) -> None:
        """Sleep until the next cycle is due, or until a change here asks for one."""
        await asyncio.sleep(PAUSE_MIN_S)
        config = self._parts.config
        if self._store_failure.count:
            pause_s = self._store_wait_s(self._store_failure.count)
        else:
            interval = (
                config.load_balancing_interval if self.is_balanced else config.rebalance_interval
            )
            pause_s = interval.total_seconds() * self._parts.rng.uniform(1 - JITTER, 1 + JITTER)
            if self._acts_in_s:
                pause_s = min(pause_s, self._acts_in_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wake.wait()

    def note(self, done: CycleResult, seconds: float) -> None:
        """Count a cycle, and log what it has changed."""
        log = self._parts.log
        self._parts.reported.cycle(seconds)
        self._store_failure.end(failure_count=self._store_failure.count)
        self.store_error = None
        self.count += 1
        self.seconds, self._acts_in_s = seconds, self._may_act_in_s(done.actions)
        self.unplaced_count = len(done.actions.plan.unplaced)
        self.claim_count += len(done.claimed)
        self.steal_count += len(done.stolen)
        self.conflict_count += done.conflict_count
        for partition_id in done.claimed:
            log.info("partition_claimed", partition_id=partition_id)
        for partition_id in done.stolen:
            log.info("partition_stolen", partition_id=partition_id)
        if done.actions.is_balanced != self.is_balanced:
            self.is_balanced = done.actions.is_balanced
            log.info("balance_changed", is_balanced=self.is_balanced)
        log.debug("cycle_done", seconds=round(seconds, 6), conflicts=done.conflict_count)

    def _may_act_in_s(self, actions: Actions) -> float:
        """Return when the members have been the same for long enough, if others know them by then.

        They do if they have been told, or if there are none.
        """
        if not actions.stable_in_s or self._parts.store.tells_changes:
            return actions.stable_in_s
        planned = set(actions.plan.owner_by_partition.values())
        return actions.stable_in_s if planned == {self._parts.member.owner_id} else 0.0

    def note_failure(self, error: StoreError, seconds: float) -> None:
        """Note a cycle that the store has not let end."""
        self._parts.reported.cycle(seconds, error)
        self.store_error = str(error)
        self._store_failure.note(is_error=error.is_final, error=self.store_error)
