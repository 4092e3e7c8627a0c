"""Reads checkpoints for the sink, and writes begin records and commits.

Rule 1: a write whose outcome is unknown does not count as won. It is repeated, and if the repeated
write loses, the checkpoint is read, because the first write may have succeeded.
Rule 2: a write that lost against another writer is not repeated.
"""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta

from eventproc._base.retries import Attempts, Backoff
from eventproc.errors import StoreError, StoreUnavailableError
from eventproc.models import (
    NOT_BEGUN,
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    OffsetFormat,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from spark_integration._positions import refuse_other_protocol
from spark_integration._sink.options import SinkOptions
from spark_integration._sink.records import (
    TaskId,
    begin_update,
    fenced,
    is_committed,
    is_handled,
    refuse_successor,
)

BACKOFF = Backoff(maximum=timedelta(seconds=5))
"""Waits between attempts to reach a store."""


async def open_store(options: SinkOptions, stack: AsyncExitStack) -> CheckpointStore:
    """Open the store until the stack closes; an outage of up to ``operationTimeout`` is waited out.

    Raises:
        StoreUnavailableError: it did not answer in that time.
    """

    async def attempt() -> CheckpointStore:
        return await stack.enter_async_context(options.store.make())

    return await Attempts(options.patience, BACKOFF, StoreUnavailableError)(attempt)


@dataclass(frozen=True, slots=True)
class StartedBatch:
    """The stored checkpoint, and whether the events after it may have been delivered before."""

    checkpoint: Checkpoint | None
    is_replay: bool


class Checkpoints:
    """The checkpoints of one consumer group, in an open store."""

    def __init__(self, store: CheckpointStore, group: ConsumerGroup, patience: timedelta) -> None:
        self._store = store
        self._group = group
        self._attempts = Attempts(patience, BACKOFF, StoreUnavailableError)

    async def read(self, partition_id: str, me: TaskId, wanted: OffsetFormat) -> Checkpoint | None:
        """Read a checkpoint, and check that no later batch or other task of the query wrote it.

        Raises:
            FencedError, OrderLostError: see ``refuse_successor``.
            ConfigurationError: it has another offset format than the rows.
            StoreUnavailableError: no answer within ``operationTimeout``.
        """
        found = await self._attempts(self._store.read_checkpoint, self._group, partition_id)
        refuse_successor(found, me)
        refuse_other_protocol(found, wanted)
        return found

    async def begin(
        self,
        partition_id: str,
        found: Checkpoint | None,
        first: int,
        me: TaskId,
        wanted: OffsetFormat,
    ) -> StartedBatch:
        """Write the begin record of a partition, before the handler gets event *first*.

        If another writer has moved the checkpoint past *first*, write nothing and return that
        checkpoint; the caller has to begin at a later event.
        """
        is_unsure = is_replay = False

        async def write(update: CheckpointUpdate) -> CheckpointResult:
            nonlocal is_unsure
            result = await self._store.update_checkpoint(self._group, update)
            if result.outcome is WriteOutcome.UNKNOWN:
                is_unsure = True
                raise _unknown(update, result.error)
            return result

        while not is_handled(first, found):
            is_begun = found is not None and found.writer == me.writer
            if not (is_begun and is_unsure):  # Otherwise an unanswered write may have made it.
                is_replay = found is not None and found.isolation != NOT_BEGUN
            update = begin_update(partition_id, found, first, me)
            if update is None or is_begun:
                return StartedBatch(found, is_replay=is_replay)
            result = await self._attempts(write, update)
            if result.outcome is WriteOutcome.WON:
                return StartedBatch(result.checkpoint, is_replay=is_replay)
            found = await self.read(partition_id, me, wanted)
        return StartedBatch(found, is_replay=False)

    async def commit(self, update: CheckpointUpdate) -> None:
        """Write the commit of a batch in one partition.

        Raises:
            FencedError: another writer has written since the begin record.
            StoreUnavailableError: no answer within ``operationTimeout``.
            StoreError: the store refuses the write, and a retry does not help.
        """
        await self._attempts(self._commit, update)

    async def _commit(self, update: CheckpointUpdate) -> None:
        result = await self._store.update_checkpoint(self._group, update)
        if result.outcome is WriteOutcome.UNKNOWN:
            # If it was written, the next write loses, and is_committed() shows it.
            raise _unknown(update, result.error)
        if result.outcome is WriteOutcome.LOST:
            found = await self._store.read_checkpoint(self._group, update.partition_id)
            if not is_committed(found, update):
                raise fenced(update, found)


def _unknown(update: CheckpointUpdate, error: StoreError | None) -> StoreError:
    """Return the error for a write with an unknown outcome: the store's, if it refused it."""
    if error is not None and error.is_final:
        return error
    return StoreUnavailableError(
        f"it is unknown whether the checkpoint of partition {update.partition_id!r} was moved to "
        f"{update.sequence_number}: {error or 'the store does not answer'}"
    )
