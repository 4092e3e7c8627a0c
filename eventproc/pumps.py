"""The pumps of one processor: started, handed over, lost, drained.

Rule 1: a partition never has two pumps. A new one starts only when the former one has closed.
Rule 2: a lease is given away only after its pump has closed, with its last checkpoint stored.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from random import Random
from typing import Final

from eventproc.config import EventProcessorConfig
from eventproc.core.assignment import reconcile
from eventproc.core.policy import backoff_s
from eventproc.logs import Logger
from eventproc.models import CloseReason, WriteOutcome
from eventproc.pump import PartitionPump
from eventproc.statistics import PumpStatistics

DRAIN_FRACTION: Final = 0.9
"""Of the time to drain: for a pump to end. The rest is for giving its lease away."""

Give = Callable[[str, str | None], Awaitable[WriteOutcome]]


class Pumps:
    """Keeps what runs equal to what is owned. Lives on the processor's loop."""

    def __init__(
        self,
        make: Callable[[str], PartitionPump],
        give: Give,
        *,
        config: EventProcessorConfig,
        changed: Callable[[], None],
        rng: Random,
        log: Logger,
    ) -> None:
        self._make = make
        self._give = give
        self._config = config
        self._changed = changed
        self._rng = rng
        self._log = log
        self._pump_by_partition: dict[str, PartitionPump] = {}
        self._task_by_partition: dict[str, asyncio.Task[CloseReason]] = {}
        self._hand_overs: dict[str, asyncio.Task[None]] = {}
        self._target_by_partition: Mapping[str, str | None] = {}
        self._failures: dict[str, tuple[int, float]] = {}
        """Failures in a row of a partition's pump, and when it may start again."""
        self.hand_over_count = 0
        self.lost_count = 0

    @property
    def handing_over(self) -> frozenset[str]:
        """Partitions whose lease is about to be given away."""
        return frozenset(self._hand_overs)

    def statistics(self) -> tuple[PumpStatistics, ...]:
        """How each partition does."""
        return tuple(
            self._pump_by_partition[p].statistics() for p in sorted(self._pump_by_partition)
        )

    def adjust(self, owned: Collection[str], hand_overs: Mapping[str, str | None]) -> None:
        """Start and end pumps so that what is owned is served, but for what is handed over."""
        self._target_by_partition = hand_overs
        now_s = asyncio.get_running_loop().time()
        resting = {p for p, (_, until_s) in self._failures.items() if now_s < until_s}
        change = reconcile(
            running=self._pump_by_partition, owned=set(owned) - resting, ending=self._hand_overs
        )
        for partition_id in change.end:
            if partition_id not in owned:
                self.lose(partition_id)
        for partition_id in change.start:
            if partition_id not in hand_overs:
                self._start(partition_id)
        for partition_id in hand_overs:
            if partition_id in owned and partition_id not in self._hand_overs:
                self._hand_overs[partition_id] = asyncio.create_task(self._hand_over(partition_id))

    def lose(self, partition_id: str) -> None:
        """The partition belongs to somebody else: end its pump at once."""
        pump = self._pump_by_partition.get(partition_id)
        if pump is not None and not pump.is_lost:
            self.lost_count += 1
            self._log.warning("ownership_lost", partition_id=partition_id)
            pump.lose()

    def lose_all(self) -> None:
        """Nothing belongs to this processor any more: end every pump at once."""
        for partition_id in list(self._pump_by_partition):
            self.lose(partition_id)

    def _start(self, partition_id: str) -> None:
        task = asyncio.create_task(self._serve(partition_id), name=f"pump-{partition_id}")
        self._task_by_partition[partition_id] = task
        task.add_done_callback(lambda _: self._forget(partition_id))

    async def _serve(self, partition_id: str) -> CloseReason:
        """Make a pump and run it; a pump that breaks rests before it is started again."""
        try:
            pump = self._pump_by_partition[partition_id] = self._make(partition_id)
            reason = await pump.run()
        except Exception as error:  # noqa: BLE001 - one partition must not stop the others
            count = self._failures.get(partition_id, (0, 0.0))[0] + 1
            wait_s = backoff_s(
                count,
                first=self._config.handler_backoff.first,
                most=self._config.handler_backoff.most,
                chance=self._rng.random(),
            )
            until_s = asyncio.get_running_loop().time() + wait_s
            self._failures[partition_id] = (count, until_s)
            self._log.error(
                "pump_failed",
                partition_id=partition_id,
                error=repr(error),
                retry_after_s=round(wait_s, 3),
                exc_info=error,
            )
            return CloseReason.HANDLER_FAILED
        self._failures.pop(partition_id, None)
        return reason

    def _forget(self, partition_id: str) -> None:
        self._pump_by_partition.pop(partition_id, None)
        self._task_by_partition.pop(partition_id, None)
        self._changed()

    async def _end(
        self, partition_id: str, reason: CloseReason, within: timedelta | None = None
    ) -> None:
        """End a partition's pump in good order, and wait until it has closed."""
        pump = self._pump_by_partition.get(partition_id)
        task = self._task_by_partition.get(partition_id)
        if pump is not None:
            pump.end(reason, within=within)
        elif task is not None:
            task.cancel()
        if task is not None:
            await asyncio.wait([task])

    async def _hand_over(self, partition_id: str) -> None:
        try:
            await self._end(partition_id, CloseReason.HANDED_OVER)
            # While it was drained the plan may have changed its mind.
            if partition_id in self._target_by_partition:
                target = self._target_by_partition[partition_id]
                outcome = await self._give(partition_id, target)
                if outcome is WriteOutcome.WON:
                    self.hand_over_count += 1
                self._log.info(
                    "partition_handed_over",
                    partition_id=partition_id,
                    to_owner_id=target,
                    outcome=outcome.value,
                )
        finally:
            del self._hand_overs[partition_id]
            self._changed()

    async def drain(
        self,
        owned: Collection[str],
        targets: Mapping[str, str | None] | None,
        within: timedelta,
    ) -> None:
        """End every pump, and give each lease to its target as soon as its pump has closed.

        Without *targets* the leases stay.
        """

        async def part(partition_id: str) -> None:
            await self._end(partition_id, CloseReason.SHUTDOWN, within * DRAIN_FRACTION)
            if targets is None:
                return
            outcome = await self._give(partition_id, targets.get(partition_id))
            self._log.info(
                "partition_released",
                partition_id=partition_id,
                to_owner_id=targets.get(partition_id),
                outcome=outcome.value,
            )

        under_way = list(self._hand_overs.values())
        partings = [
            asyncio.create_task(part(p))
            for p in sorted({*owned, *self._task_by_partition} - self._hand_overs.keys())
        ]
        try:
            await asyncio.gather(*partings, *under_way, return_exceptions=True)
        finally:
            for task in [*partings, *under_way, *self._task_by_partition.values()]:
                task.cancel()
