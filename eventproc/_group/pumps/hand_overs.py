"""Transfers the leases of partitions to other processors, each in a task of its own.

A partition that stalled here is transferred to another member, if there is one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from random import Random

from eventproc._base.logs import Logger, error_text
from eventproc.models import WriteOutcome

Transfer = Callable[[str, str | None], Awaitable[WriteOutcome]]


class HandOvers:
    """The transfers that are under way. Used on the processor's event loop only."""

    def __init__(
        self, transfer: Transfer, *, changed: Callable[[], None], rng: Random, log: Logger
    ) -> None:
        """*changed* is called after each transfer, also after one that failed."""
        self._transfer = transfer
        self._changed = changed
        self._rng = rng
        self._log = log
        self._task_by_partition: dict[str, asyncio.Task[None]] = {}
        self._target_by_partition: Mapping[str, str | None] = {}
        self._others: Sequence[str] = ()
        self.count = 0
        """Partitions that were handed over, other than by a stop."""

    @property
    def under_way(self) -> frozenset[str]:
        """Partitions whose lease is being transferred."""
        return frozenset(self._task_by_partition)

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """What transfers them. These tasks raise no error."""
        return tuple(self._task_by_partition.values())

    def follow(self, targets: Mapping[str, str | None], others: Sequence[str]) -> None:
        """Follow the newest plan, also with the transfers that are under way.

        Args:
            targets: The planned owner of each partition that is handed over; ``None``: release it.
            others: The members that a stalled partition may be transferred to.
        """
        self._target_by_partition = targets
        self._others = others

    def begin(
        self, partition_id: str, close: Callable[[], Awaitable[None]], *, is_stopping: bool
    ) -> None:
        """Call *close*, which closes the partition's pump; then transfer it to its target."""
        hand_over = partial(self._hand_over, partition_id, close, is_stopping=is_stopping)
        self._begin(partition_id, hand_over)

    def reassign(self, partition_id: str) -> None:
        """Transfer a partition that stalled here to another member, if there is one.

        If it is being handed over already, it goes where the plan wants it.
        """
        if self._others and partition_id not in self._task_by_partition:
            self._begin(partition_id, partial(self._reassign, partition_id))

    def _begin(self, partition_id: str, transfer: Callable[[], Awaitable[None]]) -> None:
        """Begin a transfer in a task; an error is logged and goes no further."""

        async def run() -> None:
            try:
                await transfer()
            except Exception as error:  # noqa: BLE001 - must not stop other partitions
                self._log.error(
                    "hand_over_failed",
                    partition_id=partition_id,
                    error=error_text(error),
                    exc_info=error,
                )
            finally:
                del self._task_by_partition[partition_id]
                self._changed()

        self._task_by_partition[partition_id] = asyncio.create_task(run())

    async def _reassign(self, partition_id: str) -> None:
        target = self._rng.choice(self._others)
        outcome = await self._transfer(partition_id, target)
        self._log.warning(
            "partition_reassigned",
            partition_id=partition_id,
            to_owner_id=target,
            outcome=outcome.value,
        )

    async def _hand_over(
        self, partition_id: str, close: Callable[[], Awaitable[None]], *, is_stopping: bool
    ) -> None:
        await close()
        # The plan may have changed while the partition was drained.
        if partition_id not in self._target_by_partition:
            return
        target = self._target_by_partition[partition_id]
        outcome = await self._transfer(partition_id, target)
        log = self._log.bind(partition_id=partition_id, to_owner_id=target, outcome=outcome.value)
        if is_stopping:
            log.info("partition_released")
        else:
            self.count += outcome is WriteOutcome.WON
            log.info("partition_handed_over")
