"""Takes over a partition's checkpoint, which fences the pump that wrote it before.

Rule: a partition is not served before its checkpoint is adopted. While the store does not answer,
adoption is retried; a refused or damaged checkpoint, or one of a hub that was deleted and created
again, is also reported to the handler.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from eventproc._base.logs import ConditionLogger
from eventproc._core.delivery import checkpoints
from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.config import RecreatedHub
from eventproc._delivery.scope import PartitionScope
from eventproc.errors import (
    HubRecreatedError,
    OwnershipLostError,
    StoreError,
    StoreUnavailableError,
)
from eventproc.models import Checkpoint, CheckpointResult, WriteOutcome


class Adoption:
    """The adoption of one partition's checkpoint by one pump."""

    def __init__(
        self,
        checkpointer: Checkpointer,
        *,
        scope: PartitionScope,
        is_from_first: bool,
        hub_created_at: Callable[[], datetime | None],
        recreated_hub: RecreatedHub,
        wait_s: Callable[[int], float],
        report: Callable[[StoreError, int], Awaitable[None]],
    ) -> None:
        """Adopt nothing before ``run``.

        Args:
            checkpointer: Continues from the checkpoint that is adopted.
            scope: Ends the waits, and logs refusals.
            is_from_first: Whether reading begins at the first event if there is no checkpoint.
                Then one is written (offset -1), so that a former owner is fenced in that case too.
            hub_created_at: Returns when the hub was created, if the source says; an older
                checkpoint is of another hub.
            recreated_hub: What to do with a checkpoint of a hub that was deleted.
            wait_s: Seconds to wait after the n-th failed attempt.
            report: Passes an error that an operator has to resolve to the handler, with the number
                of the attempt.
        """
        self._checkpointer = checkpointer
        self._record = checkpointer.record
        self._stop_scope = scope.stop
        self._is_from_first = is_from_first
        self._hub_created_at = hub_created_at
        self._recreated_hub = recreated_hub
        self._wait_s = wait_s
        self._report = report
        self._failure = ConditionLogger(scope.log, "adoption_failed", "adoption_recovered")
        self._recreation = ConditionLogger(scope.log, "hub_recreated", "hub_recreation_resolved")
        self.is_from_operator = False
        """Whether an operator moved the checkpoint that was adopted, since its last owner."""

    async def run(self) -> Checkpoint | None:
        """Adopt the checkpoint; retry until that succeeds or the pump ends.

        Returns the checkpoint to start from, as it is stored now.

        Raises:
            OwnershipLostError: another processor owns the partition by now.
        """
        refusal_count = 0
        while True:
            try:
                with self._stop_scope.waiting():
                    checkpoint = await self.attempt()
            except StoreError as error:
                refusal_count += error.is_final
                attempt = self._failure.count + 1
                self._failure.note(is_error=error.is_final, attempt=attempt, error=str(error))
                if error.is_final:
                    await self._report(error, refusal_count)
                with self._stop_scope.waiting():
                    await asyncio.sleep(self._wait_s(attempt))
            else:
                self._failure.end(attempt_count=self._failure.count + 1)
                return checkpoint

    async def attempt(self) -> Checkpoint | None:
        """Read the former owner's checkpoint and write it back, as ``run`` does repeatedly.

        Raises:
            OwnershipLostError: another processor owns the partition by now.
            HubRecreatedError: the checkpoint is of a hub that was deleted, and the policy is to
                stop. It was not adopted.
            StoreError: the outcome is not known, or the store refused; call again. If the error
                is final, that succeeds only after an operator has acted.
        """
        overtaken_count = 0
        try:
            while True:
                result = await self._try_once()
                if result.outcome is WriteOutcome.WON:
                    break
                if result.outcome is WriteOutcome.UNKNOWN:
                    raise result.error or StoreUnavailableError(
                        f"the store did not say whether the checkpoint of partition "
                        f"{self._record.partition_id!r} was taken over"
                    )
                overtaken_count += 1
                await asyncio.sleep(self._wait_s(overtaken_count))
        except StoreError as error:
            self._checkpointer.note_refusal(error)
            raise
        self._recreation.end()
        self._checkpointer.adopt(result.checkpoint)
        return result.checkpoint

    async def _try_once(self) -> CheckpointResult:
        record, hub_created_at = self._record, self._hub_created_at()
        found = await record.read()
        # Stays true if the answer to the adoption is lost, and what is read next is our own write.
        self.is_from_operator |= found is not None and checkpoints.is_moved_by_operator(found)
        update = checkpoints.adoption(found, record.writer)
        if found is not None and checkpoints.is_of_former_hub(found, hub_created_at):
            policy, number = self._recreated_hub, found.sequence_number
            is_stopped = policy is RecreatedHub.STOP
            self._recreation.note(is_error=is_stopped, policy=policy.value, sequence_number=number)
            if is_stopped:
                is_older = checkpoints.is_older_than_hub(found, hub_created_at)
                raise HubRecreatedError(record.partition_id, number, is_older_than_hub=is_older)
            update = checkpoints.restart_in_new_hub(found, record.writer)
        if found is None and self._is_from_first:
            update = checkpoints.initial_checkpoint(record.partition_id, record.writer)
        if update is None:
            return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=found)
        # Verified after the read: otherwise this write could fence a newer owner.
        if not await record.verify():
            raise OwnershipLostError(record.partition_id)
        return await record.write(update)
