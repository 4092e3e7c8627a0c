"""The pumps of one processor: starts, hands over, loses and drains them.

Rule 1: a partition never has two pumps. A new one starts only when the former one has closed.
Rule 2: a lease is transferred only after its pump has closed, with its last checkpoint stored.
Rule 3: a pump that failed is not started again at once, here or in another processor:
- A partition that the failure policy stopped stays owned, and is not served until ``resume``.
- A pump that raised an error, or whose source refused, is restarted after a back-off.
- A stalled partition is transferred to another member, if there is one; here it is served again
  only after a back-off.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Final, Generic

from eventproc.concurrency.tasks import users_code
from eventproc.config import GroupConfig
from eventproc.core.pauses import NO_PAUSES, Pauses
from eventproc.core.placement.loads import WorkDone
from eventproc.core.policy import backoff_s
from eventproc.logs import Logger, shown
from eventproc.models import CloseReason, WriteOutcome
from eventproc.pumps.pump import PumpT
from eventproc.statistics import Counters

DRAIN_FRACTION: Final = 0.9
"""The part of the time to drain in which a pump has to end. The rest is to transfer its lease."""

Transfer = Callable[[str, str | None], Awaitable[WriteOutcome]]


class Pumps(Generic[PumpT]):
    """Runs one pump for each owned partition. Used on the processor's event loop only."""

    def __init__(
        self,
        make: Callable[[str], PumpT],
        transfer: Transfer,
        *,
        config: GroupConfig,
        changed: Callable[[], None],
        rng: Random,
        log: Logger,
    ) -> None:
        self._make = make
        self._transfer = transfer
        self._config = config
        self._changed = changed
        self._rng = rng
        self._log = log
        self._pump_by_partition: dict[str, PumpT] = {}
        self._task_by_partition: dict[str, asyncio.Task[CloseReason]] = {}
        self._hand_overs: dict[str, asyncio.Task[None]] = {}
        self._target_by_partition: Mapping[str, str | None] = {}
        self._others: Sequence[str] = ()
        self._drain_budget: timedelta | None = None
        """For how long each pump may take to end, once the processor stops."""

        self._failures: dict[str, tuple[int, float]] = {}
        """Failures in a row of a partition's pump, and when it may start again."""

        self._stopped: set[str] = set()
        self._stalled: set[str] = set()
        """Partitions whose pump closed because of a stall, with the lease not transferred yet."""

        self._paused: set[str] = set()
        self._group_pauses = NO_PAUSES
        self._forced: set[str] = set()
        """Partitions whose next pump ignores the limit of deliveries for its first event."""

        self._past: Counters | None = None
        """The sum of the counters of ended pumps."""

        self.abandoned: tuple[str, ...] = ()
        """Partitions that were drained without storing their last checkpoint."""

        self.hand_over_count = 0
        self.lost_count = 0

    @property
    def handing_over(self) -> frozenset[str]:
        """Partitions whose lease is being transferred."""
        return frozenset(self._hand_overs)

    @property
    def restarting(self) -> tuple[str, ...]:
        """Partitions whose pump failed, and that are tried again after a wait."""
        return tuple(sorted(self._failures.keys() - self.running))

    @property
    def running(self) -> frozenset[str]:
        """Partitions whose pump has not ended: its handler may be running."""
        return frozenset(self._task_by_partition)

    @property
    def current(self) -> tuple[PumpT, ...]:
        """The pumps that have not ended, by partition id."""
        return tuple(self._pump_by_partition[p] for p in sorted(self._pump_by_partition))

    @property
    def work(self) -> dict[str, WorkDone]:
        """How much work each pump that has not ended has done, by partition id."""
        return {p: pump.work for p, pump in self._pump_by_partition.items()}

    def add_counts(self, total: Counters) -> None:
        """Add the counts of all pumps to *total*, those of ended ones included."""
        if self._past is not None:
            total.add(self._past)
        for pump in self.current:
            total.add(pump.counters)

    @property
    def stopped(self) -> tuple[str, ...]:
        """Partitions that the failure policy stopped: owned, and not served until ``resume``."""
        return tuple(sorted(self._stopped))

    def pause(self, partition_id: str) -> None:
        """Receive nothing from a partition until ``resume``, even if its pump is restarted."""
        self._paused.add(partition_id)
        pump = self._pump_by_partition.get(partition_id)
        if pump is not None:
            pump.pause()

    def resume(self, partition_id: str) -> None:
        """End a pause, or serve a partition again that the failure policy stopped."""
        self._paused.discard(partition_id)
        pump = self._pump_by_partition.get(partition_id)
        if pump is not None:
            pump.resume()
        if partition_id in self._stopped:
            self._stopped.discard(partition_id)
            self._forced.add(partition_id)
            self._changed()

    def follow(self, pauses: Pauses) -> None:
        """Follow the group's pauses, which neither ``pause`` nor ``resume`` changes.

        Call it before ``adjust``, so that a pump never starts without its pause.
        """
        self._group_pauses = pauses
        for partition_id, pump in self._pump_by_partition.items():
            pump.follow(pauses.of(partition_id))

    def adjust(
        self,
        owned: Collection[str],
        hand_overs: Mapping[str, str | None],
        others: Sequence[str] = (),
    ) -> None:
        """Start and end pumps: every owned partition has one, unless it is handed over.

        Args:
            owned: Partitions whose lease this processor holds.
            hand_overs: Partitions to drain, and the planned owner of each; ``None``: release it.
            others: The members that a stalled partition may be transferred to.
        """
        self._target_by_partition = hand_overs
        self._others = others
        self._stopped &= set(owned)
        self._paused &= set(owned)
        self._forced &= set(owned)
        now_s = asyncio.get_running_loop().time()
        waiting = {p for p, (_, until_s) in self._failures.items() if now_s < until_s}
        for partition_id in sorted(self.running - self.handing_over - set(owned)):
            self.lose(partition_id)
        not_served = waiting | self._stopped | self.running | self.handing_over | hand_overs.keys()
        for partition_id in sorted(set(owned) - not_served):
            self._start(partition_id)
        for partition_id in hand_overs:
            if partition_id in owned and partition_id not in self._hand_overs:
                self._transfer_after(self._hand_over, partition_id)

    def lose(self, partition_id: str) -> None:
        """End a partition's pump at once: another processor owns the partition."""
        pump = self._pump_by_partition.get(partition_id)
        if pump is not None and not pump.is_lost:
            self.lost_count += 1
            pump.lose()

    def lose_all(self) -> None:
        """End every pump at once: this processor owns nothing any more."""
        for partition_id in list(self._pump_by_partition):
            self.lose(partition_id)

    def _start(self, partition_id: str) -> None:
        task = asyncio.create_task(self._serve(partition_id), name=f"pump-{partition_id}")
        self._task_by_partition[partition_id] = task
        task.add_done_callback(lambda _: self._forget(partition_id))

    async def _serve(self, partition_id: str) -> CloseReason:
        """Make a pump and run it; after an error, back off before the next start."""
        error: Exception | None = None
        try:
            with users_code():
                pump = self._pump_by_partition[partition_id] = self._make(partition_id)
                if partition_id in self._paused:
                    pump.pause()
                pump.follow(self._group_pauses.of(partition_id))
                if partition_id in self._forced:
                    self._forced.discard(partition_id)
                    pump.force()
                reason = await pump.run()
        except Exception as raised:  # noqa: BLE001 - an error must not stop other partitions
            error, reason = raised, CloseReason.HANDLER_FAILED
        if error is not None or reason in {CloseReason.SOURCE_FAILED, CloseReason.STALLED}:
            self._back_off(partition_id, reason, error)
            if reason is CloseReason.STALLED:
                self._stalled.add(partition_id)
            return reason
        if reason is CloseReason.HANDLER_FAILED:
            self._stopped.add(partition_id)
        self._failures.pop(partition_id, None)
        return reason

    def _back_off(self, partition_id: str, reason: CloseReason, error: Exception | None) -> None:
        count = self._failures.get(partition_id, (0, 0.0))[0] + 1
        wait_s = backoff_s(
            count,
            initial=self._config.handler_backoff.initial,
            maximum=self._config.handler_backoff.maximum,
            chance=self._rng.random(),
        )
        loop = asyncio.get_running_loop()
        self._failures[partition_id] = (count, loop.time() + wait_s)
        loop.call_later(wait_s, self._changed)
        self._log.error(
            "pump_failed",
            partition_id=partition_id,
            reason=reason.value,
            error=None if error is None else shown(error),
            retry_after_s=round(wait_s, 3),
            exc_info=error,
        )

    def _forget(self, partition_id: str) -> None:
        pump = self._pump_by_partition.pop(partition_id, None)
        self._task_by_partition.pop(partition_id, None)
        if pump is not None:
            if self._past is None:
                self._past = pump.counters.copy()
            else:
                self._past.add(pump.counters)
            if pump.is_paused:
                self._paused.add(partition_id)
        if partition_id in self._stalled:
            self._stalled.discard(partition_id)
            if self._others:
                self._transfer_after(self._reassign_stalled, partition_id)
        self._changed()

    def _transfer_after(
        self, transfer: Callable[[str], Awaitable[None]], partition_id: str
    ) -> None:
        """Transfer a partition in a task; an error is logged and goes no further."""

        async def run() -> None:
            try:
                await transfer(partition_id)
            except Exception as error:  # noqa: BLE001 - must not stop other partitions
                self._log.error(
                    "hand_over_failed",
                    partition_id=partition_id,
                    error=shown(error),
                    exc_info=error,
                )
            finally:
                del self._hand_overs[partition_id]
                self._changed()

        self._hand_overs[partition_id] = asyncio.create_task(run())

    async def _reassign_stalled(self, partition_id: str) -> None:
        """Transfer a partition that stalled here to another member, chosen at random."""
        target = self._rng.choice(self._others)
        outcome = await self._transfer(partition_id, target)
        self._log.warning(
            "partition_reassigned",
            partition_id=partition_id,
            to_owner_id=target,
            outcome=outcome.value,
        )

    async def _end(self, partition_id: str, reason: CloseReason) -> None:
        """End a partition's pump: let its calls finish, and wait until it has closed."""
        pump = self._pump_by_partition.get(partition_id)
        task = self._task_by_partition.get(partition_id)
        if pump is not None:
            pump.end(reason, within=self._drain_budget)
        if task is not None:
            await asyncio.wait([task])

    async def _hand_over(self, partition_id: str) -> None:
        is_stopping = self._drain_budget is not None
        await self._end(
            partition_id, CloseReason.SHUTDOWN if is_stopping else CloseReason.HANDED_OVER
        )
        # The plan may have changed while the partition was drained.
        if partition_id not in self._target_by_partition:
            return
        target = self._target_by_partition[partition_id]
        outcome = await self._transfer(partition_id, target)
        log = self._log.bind(partition_id=partition_id, to_owner_id=target, outcome=outcome.value)
        if is_stopping:
            log.info("partition_released")
        else:
            self.hand_over_count += outcome is WriteOutcome.WON
            log.info("partition_handed_over")

    async def drain(
        self,
        owned: Collection[str],
        targets: Mapping[str, str | None] | None,
        within: timedelta,
    ) -> None:
        """End every pump, and transfer each lease as soon as its pump has closed.

        Args:
            owned: Partitions whose lease this processor holds.
            targets: The new owner of each partition; one that is not named is released. ``None``:
                this processor keeps all leases.
            within: The time for all of that.
        """
        self._drain_budget = within * DRAIN_FRACTION
        pumps = dict(self._pump_by_partition)
        if targets is not None:
            self.adjust(owned, {p: targets.get(p) for p in sorted(owned)})
        ends = [
            asyncio.create_task(self._end(p, CloseReason.SHUTDOWN))
            for p in sorted(self._task_by_partition.keys() - self._hand_overs.keys())
        ]
        ends += self._hand_overs.values()
        try:
            await asyncio.gather(*ends, return_exceptions=True)
        finally:
            for task in [*ends, *self._task_by_partition.values()]:
                task.cancel()
            self.abandoned = tuple(
                p
                for p, pump in sorted(pumps.items())
                if not pump.is_lost and pump.has_unstored_progress
            )
