"""The pumps of one processor: starts, hands over, loses and drains them.

Rule 1: a partition never has two pumps. A new one starts only when the former one has closed.
Rule 2: a lease is transferred only after its pump has closed, with its last checkpoint stored.
Rule 3: a pump that failed is not started again at once, here or in another processor: see
``restarts.py`` and ``hand_overs.py``.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final, Generic

from eventproc._base.logs import Logger
from eventproc._base.retries import Backoff
from eventproc._base.tasks import users_code
from eventproc._core.ownership.pauses import NO_PAUSES, Pauses
from eventproc._core.placement.loads import WorkDone
from eventproc._group.pumps.hand_overs import HandOvers, Transfer
from eventproc._group.pumps.pump import MakePump, PumpT
from eventproc._group.pumps.restarts import Restarts
from eventproc.models import CloseReason
from eventproc.models._statistics import Counters

DRAIN_FRACTION: Final = 0.9
"""The part of the time to drain in which a pump has to end. The rest is to transfer its lease."""


class Pumps(Generic[PumpT]):
    """Runs one pump for each owned partition. Used on the processor's event loop only."""

    def __init__(
        self,
        make: MakePump[PumpT],
        transfer: Transfer,
        *,
        backoff: Backoff,
        changed: Callable[[], None],
        rng: Random,
        log: Logger,
    ) -> None:
        """Run nothing yet.

        Args:
            make: Makes the pump of a partition.
            transfer: Transfers a partition's lease to an owner, or releases it.
            backoff: The waits after failures in a row of a partition's pump.
            changed: Called when the next cycle may have something to do.
            rng: Chooses another member for a partition that stalled here, and varies waits.
            log: The processor's.
        """
        self._make = make
        self._changed = changed
        self.hand_overs = HandOvers(transfer, changed=changed, rng=rng, log=log)
        self.restarts = Restarts(backoff, rng, changed=changed, log=log)
        self._pump_by_partition: dict[str, PumpT] = {}
        self._task_by_partition: dict[str, asyncio.Task[CloseReason]] = {}
        self._paused: set[str] = set()
        self._group_pauses = NO_PAUSES
        self._drain_budget: timedelta | None = None
        """For how long each pump may take to end, once the processor stops."""

        self._past: Counters | None = None
        """The sum of the counters of ended pumps."""

        self.abandoned: tuple[str, ...] = ()
        """Partitions that were drained without storing their last checkpoint."""

        self.lost_count = 0

    @property
    def restarting(self) -> tuple[str, ...]:
        """Partitions whose pump failed, and that are tried again after a wait."""
        return tuple(sorted(self.restarts.failed - self.running))

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

    def pause(self, partition_id: str) -> None:
        """Receive nothing from a partition until ``resume``, even if its pump is restarted."""
        self._paused.add(partition_id)
        if partition_id in self._pump_by_partition:
            self._pump_by_partition[partition_id].pause()

    def resume(self, partition_id: str) -> None:
        """End a pause, or serve a partition again that the failure policy stopped."""
        self._paused.discard(partition_id)
        if partition_id in self._pump_by_partition:
            self._pump_by_partition[partition_id].resume()
        self.restarts.resume(partition_id)

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
        self.hand_overs.follow(hand_overs, others)
        self.restarts.keep_only(owned)
        self._paused &= set(owned)
        handing_over = self.hand_overs.under_way
        for partition_id in sorted(self.running - handing_over - set(owned)):
            self.lose(partition_id)
        not_served = self.restarts.held_back | self.running | handing_over | hand_overs.keys()
        for partition_id in sorted(set(owned) - not_served):
            self._start(partition_id)
        is_stopping = self._drain_budget is not None
        reason = CloseReason.SHUTDOWN if is_stopping else CloseReason.HANDED_OVER
        for partition_id in hand_overs:
            if partition_id in owned and partition_id not in handing_over:
                close = partial(self._end, partition_id, reason)
                self.hand_overs.begin(partition_id, close, is_stopping=is_stopping)

    def lose(self, partition_id: str) -> None:
        """End a partition's pump at once: another processor owns the partition."""
        pump = self._pump_by_partition.get(partition_id)
        if pump is None and partition_id in self._task_by_partition:
            self._task_by_partition[partition_id].cancel()  # Before its first step.
        if pump is not None and not pump.is_lost:
            self.lost_count += 1
            pump.lose()

    def lose_all(self) -> None:
        """End every pump at once: this processor owns nothing any more."""
        for partition_id in self.running:
            self.lose(partition_id)

    def _start(self, partition_id: str) -> None:
        task = asyncio.create_task(self._serve(partition_id), name=f"pump-{partition_id}")
        self._task_by_partition[partition_id] = task
        task.add_done_callback(lambda _: self._forget(partition_id))

    async def _serve(self, partition_id: str) -> CloseReason:
        """Make a pump and run it; return why it ended, also after an error."""
        error: Exception | None = None
        clock = asyncio.get_running_loop().time
        began_s = clock()
        try:
            with users_code():
                pump = self._pump_by_partition[partition_id] = self._make(
                    partition_id, is_forced=self.restarts.take_forced(partition_id)
                )
                if partition_id in self._paused:
                    pump.pause()
                pump.follow(self._group_pauses.of(partition_id))
                reason = await pump.run()
        except Exception as raised:  # noqa: BLE001 - an error must not stop other partitions
            error, reason = raised, CloseReason.HANDLER_FAILED
        self.restarts.note(partition_id, reason, error, ran_s=clock() - began_s)
        return reason

    def _forget(self, partition_id: str) -> None:
        pump = self._pump_by_partition.pop(partition_id, None)
        task = self._task_by_partition.pop(partition_id)
        if pump is not None:
            if self._past is None:
                self._past = pump.counters.copy()
            else:
                self._past.add(pump.counters)
            if pump.is_paused:
                self._paused.add(partition_id)
        if not task.cancelled() and task.result() is CloseReason.STALLED:
            self.hand_overs.reassign(partition_id)
        self._changed()

    async def _end(self, partition_id: str, reason: CloseReason) -> None:
        """End a partition's pump: let its calls finish, and wait until it has closed."""
        pump = self._pump_by_partition.get(partition_id)
        task = self._task_by_partition.get(partition_id)
        if pump is not None:
            pump.end(reason, within=self._drain_budget)
        if task is not None:
            await asyncio.wait([task])

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
            for p in sorted(self.running - self.hand_overs.under_way)
        ]
        ends += self.hand_overs.tasks
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
