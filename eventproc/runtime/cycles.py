"""The claim loop of one run: repeats the cycle of load balancing, and keeps its figures."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Final, Generic

from eventproc.concurrency.tasks import cancellation_kept, users_code
from eventproc.config import Backoff
from eventproc.errors import SourceError, StoreError
from eventproc.logs import ConditionLogger
from eventproc.ownership.balancer import CycleResult
from eventproc.pumps.pump import PumpT, Work
from eventproc.retries import waits
from eventproc.runtime.parts import MemberParts
from eventproc.runtime.run import DISPLACING, JITTER, ProcessorRun

PAUSE_MIN_S: Final = 0.02
"""The shortest pause between two cycles, so that frequent changes cause no busy loop."""


class Cycles(Generic[PumpT]):
    """The cycles of one run. What they have counted can still be read after the run."""

    def __init__(self, parts: MemberParts, work: Work[PumpT]) -> None:
        """Create it on the loop of the run."""
        self._config = parts.config
        self._rng: Random = parts.rng
        self._log = parts.log
        self._store = parts.store
        self._work = work
        self._reported = parts.reported
        self._wake = asyncio.Event()
        self._settles_in_s = 0.0
        self._store_failure = ConditionLogger(self._log, "store_failed", "store_recovered")
        self._store_wait_s = waits(
            Backoff(
                initial=self._config.rebalance_interval,
                maximum=self._config.load_balancing_interval,
            ),
            self._rng,
        )
        self.is_balanced = False
        self.unplaced_count = self.count = self.claim_count = self.steal_count = 0
        self.seconds = 0.0
        """The duration of the newest one."""

        self.store_error: str | None = None

    def wake(self) -> None:
        """Begin the next cycle now: something has changed."""
        self._wake.set()

    async def repeat(self, run: ProcessorRun[PumpT]) -> None:
        """Run one cycle after the other; raise only errors that end the processor."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            begun_s = loop.time()
            try:
                done = await run.cycle()
            except DISPLACING:
                raise
            except StoreError as error:
                self._note_store_failure(error, loop.time() - begun_s)
            else:
                self._note_cycle(done, loop.time() - begun_s)
            await self._pause()

    async def _pause(self) -> None:
        """Sleep until the next cycle is due, or until a change here asks for one."""
        await asyncio.sleep(PAUSE_MIN_S)
        config = self._config
        if self._store_failure.count:
            pause_s = self._store_wait_s(self._store_failure.count)
        else:
            interval = (
                config.load_balancing_interval if self.is_balanced else config.rebalance_interval
            )
            pause_s = interval.total_seconds() * self._rng.uniform(1 - JITTER, 1 + JITTER)
            if self._settles_in_s and self._store.tells_changes:
                pause_s = min(pause_s, self._settles_in_s)  # The others have been told by now.
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wake.wait()

    async def read_names(self, run: ProcessorRun[PumpT]) -> None:
        """Read periodically which partitions or resources exist."""
        work = self._work
        failure = ConditionLogger(self._log, "partition_ids_failed", "partition_ids_recovered")
        while True:
            await asyncio.sleep(work.names_interval.total_seconds())
            try:
                with cancellation_kept(), users_code():
                    names = tuple(await work.names())
            except SourceError as error:
                failure.note(error=str(error))
                continue
            failure.end()
            if names != run.names:
                self._log.info("partition_count_changed", before=len(run.names), after=len(names))
                run.names = names
                self.wake()

    def _note_cycle(self, done: CycleResult, seconds: float) -> None:
        self._reported.cycle(seconds)
        self._store_failure.end(failure_count=self._store_failure.count)
        self.store_error = None
        self.count += 1
        self.seconds, self._settles_in_s = seconds, done.actions.settles_in_s
        self.unplaced_count = len(done.actions.unplaced)
        self.claim_count += len(done.claimed)
        self.steal_count += len(done.stolen)
        for partition_id in done.claimed:
            self._log.info("partition_claimed", partition_id=partition_id)
        for partition_id in done.stolen:
            self._log.info("partition_stolen", partition_id=partition_id)
        if done.actions.is_balanced != self.is_balanced:
            self.is_balanced = done.actions.is_balanced
            self._log.info("balance_changed", is_balanced=self.is_balanced)
        self._log.debug("cycle_done", seconds=round(seconds, 6), conflicts=done.conflict_count)

    def _note_store_failure(self, error: StoreError, seconds: float) -> None:
        self._reported.cycle(seconds, error)
        self.store_error = str(error)
        self._store_failure.note(is_error=error.is_final, error=self.store_error)
