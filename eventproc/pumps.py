"""The pumps of one processor: started, handed over, lost, drained.

Rule 1: a partition never has two pumps. A new one starts only when the former one has closed.
Rule 2: a lease is given away only after its pump has closed, with its last checkpoint stored.
Rule 3: what a pump could not go on with does not go on at full speed elsewhere either. A partition
that the failure policy stopped stays owned and is not served; one whose pump broke, or whose source
refuses, rests before it is served again; one that stalled goes to another processor, if there is
one, and rests before it is served here again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Final

from eventproc.config import EventProcessorConfig
from eventproc.core.assignment import reconcile
from eventproc.core.policy import backoff_s
from eventproc.ending import is_cancelled
from eventproc.errors import HandlerCancelledError
from eventproc.logs import Logger, shown
from eventproc.models import CloseReason, WriteOutcome
from eventproc.pump import PartitionPump
from eventproc.statistics import PumpStatistics, Tally

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
        self._others: Sequence[str] = ()
        self._failures: dict[str, tuple[int, float]] = {}
        """Failures in a row of a partition's pump, and when it may start again."""

        self._stopped: set[str] = set()
        self._stalled: set[str] = set()
        """Closed for that reason, and not yet given away."""

        self._paused: set[str] = set()
        self._forced: set[str] = set()
        """To be tried again at the next start although too many processes died of it."""

        self._past = Tally()
        self.hand_over_count = 0
        self.lost_count = 0

    @property
    def handing_over(self) -> frozenset[str]:
        """Partitions whose lease is about to be given away."""
        return frozenset(self._hand_overs)

    @property
    def running(self) -> frozenset[str]:
        """Partitions whose pump has not ended: its handler may be at work."""
        return frozenset(self._task_by_partition)

    def statistics(self) -> tuple[PumpStatistics, ...]:
        """How each partition does."""
        return tuple(
            self._pump_by_partition[p].statistics() for p in sorted(self._pump_by_partition)
        )

    def tally(self) -> Tally:
        """What was counted in all partitions, also in those that are served no more."""
        total = self._past.copy()
        for pump in self._pump_by_partition.values():
            total.add(pump.tally)
        return total

    @property
    def stopped(self) -> tuple[str, ...]:
        """What the failure policy stopped: owned, and not served until ``resume``."""
        return tuple(sorted(self._stopped))

    def pause(self, partition_id: str) -> None:
        """Let a partition receive nothing until ``resume``, however often its pump starts."""
        self._paused.add(partition_id)
        pump = self._pump_by_partition.get(partition_id)
        if pump is not None:
            pump.pause()

    def resume(self, partition_id: str) -> None:
        """Take back a pause, or try again what the failure policy stopped."""
        self._paused.discard(partition_id)
        pump = self._pump_by_partition.get(partition_id)
        if pump is not None:
            pump.resume()
        if partition_id in self._stopped:
            self._stopped.discard(partition_id)
            self._forced.add(partition_id)
            self._changed()

    def adjust(
        self,
        owned: Collection[str],
        hand_overs: Mapping[str, str | None],
        others: Sequence[str] = (),
    ) -> None:
        """Start and end pumps so that what is owned is served, but for what is handed over.

        *others* are the members that could be given a partition.
        """
        self._target_by_partition = hand_overs
        self._others = others
        self._stopped &= set(owned)
        self._paused &= set(owned)
        self._forced &= set(owned)
        now_s = asyncio.get_running_loop().time()
        resting = {p for p, (_, until_s) in self._failures.items() if now_s < until_s}
        change = reconcile(
            running=self._task_by_partition,
            owned=set(owned) - resting - self._stopped,
            ending=self._hand_overs,
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
        """Make a pump and run it; one that could not go on rests before it is started again."""
        error: Exception | None = None
        try:
            pump = self._pump_by_partition[partition_id] = self._make(partition_id)
            if partition_id in self._paused:
                pump.pause()
            if partition_id in self._forced:
                self._forced.discard(partition_id)
                pump.force()
            reason = await pump.run()
        except asyncio.CancelledError as stray:
            if is_cancelled():
                raise
            error, reason = HandlerCancelledError(stray), CloseReason.HANDLER_FAILED
        except Exception as raised:  # noqa: BLE001 - one partition must not stop the others
            error, reason = raised, CloseReason.HANDLER_FAILED
        if error is not None or reason in {CloseReason.SOURCE_FAILED, CloseReason.STALLED}:
            self._rest(partition_id, reason, error)
            if reason is CloseReason.STALLED:
                self._stalled.add(partition_id)
            return reason
        if reason is CloseReason.HANDLER_FAILED:
            self._stopped.add(partition_id)
        self._failures.pop(partition_id, None)
        return reason

    def _rest(self, partition_id: str, reason: CloseReason, error: Exception | None) -> None:
        count = self._failures.get(partition_id, (0, 0.0))[0] + 1
        wait_s = backoff_s(
            count,
            first=self._config.handler_backoff.first,
            most=self._config.handler_backoff.most,
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
            self._past.add(pump.tally)
            if pump.is_paused:
                self._paused.add(partition_id)
        if partition_id in self._stalled:
            self._stalled.discard(partition_id)
            if self._others:
                self._hand_overs[partition_id] = asyncio.create_task(self._pass_on(partition_id))
        self._changed()

    async def _pass_on(self, partition_id: str) -> None:
        """Give a partition that stalled here to another member: there it may do better."""
        try:
            target = self._rng.choice(self._others)
            outcome = await self._give(partition_id, target)
            self._log.warning(
                "partition_passed_on",
                partition_id=partition_id,
                to_owner_id=target,
                outcome=outcome.value,
            )
        finally:
            del self._hand_overs[partition_id]
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
