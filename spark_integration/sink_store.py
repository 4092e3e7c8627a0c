"""The sink's reading and writing of checkpoints: marking what begins, committing what is done.

Rule 1: an answer that tells nothing is never taken for a success: it is asked again.
Rule 2: what lost against somebody else is not tried over it.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

from eventproc.config import Backoff
from eventproc.core.policy import backoff_s
from eventproc.errors import StoreUnavailableError
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    ConsumerGroup,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from spark_integration.positions import refuse_kafka
from spark_integration.sink_records import (
    TaskId,
    fenced,
    is_committed,
    is_handled,
    mark,
    refuse_successor,
)

BACKOFF = Backoff(most=timedelta(seconds=5))
"""Between attempts to reach a store."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A checkpoint as it stands now, and whether what follows it was handed over before."""

    checkpoint: Checkpoint | None
    is_replay: bool


class Checkpoints:
    """The checkpoints of one group, in a store that is open."""

    def __init__(self, store: CheckpointStore, group: ConsumerGroup, patience: timedelta) -> None:
        self._store = store
        self._group = group
        self._patience_s = patience.total_seconds()

    async def read(self, partition_id: str, me: TaskId) -> Checkpoint | None:
        """Read a checkpoint, of a group that no successor works for.

        Raises:
            FencedError, OrderLostError: see ``refuse_successor``.
            ConfigurationError: a processor wrote it that reads over Kafka.
            StoreUnavailableError: no answer for as long as ``operationTimeout``.
        """
        patience = Patience(self._patience_s)
        while True:
            try:
                found = await self._store.read_checkpoint(self._group, partition_id)
            except StoreUnavailableError as error:
                await patience.wait(error)
            else:
                refuse_successor(found, me)
                refuse_kafka(found)
                return found

    async def begin(
        self, partition_id: str, found: Checkpoint | None, first: int, me: TaskId
    ) -> Begun:
        """Mark a checkpoint as the one whose batch is about to be handled.

        Where somebody moved it past event *first* meanwhile, it is not marked: look again.
        """
        patience = Patience(self._patience_s)
        is_unsure = is_replay = False
        while not is_handled(first, found):
            if found is None or found.writer != me.writer:
                is_replay = found is not None and found.delivery_count > 0
            elif not is_unsure:
                is_replay = found.delivery_count > 0  # Another attempt at this very task.
            update = mark(partition_id, found, first, me)
            if update is None or (found is not None and found.writer == me.writer):
                return Begun(found, is_replay=is_replay)
            result = await self._store.update_checkpoint(self._group, update)
            if result.outcome is WriteOutcome.WON:
                return Begun(result.checkpoint, is_replay=is_replay)
            if result.outcome is WriteOutcome.UNKNOWN:
                is_unsure = True
                await patience.wait(_no_answer(update))
            found = await self.read(partition_id, me)
        return Begun(found, is_replay=False)

    async def commit(self, update: CheckpointUpdate) -> None:
        """Write that a batch is done in one partition.

        Raises:
            FencedError: somebody else wrote since the partition was begun.
            StoreUnavailableError: no answer for as long as ``operationTimeout``.
        """
        patience = Patience(self._patience_s)
        while True:
            result = await self._store.update_checkpoint(self._group, update)
            if result.outcome is WriteOutcome.WON:
                return
            if result.outcome is WriteOutcome.UNKNOWN:
                await patience.wait(_no_answer(update))
                continue  # If it was written after all, this one loses, and the reading tells.
            try:
                found = await self._store.read_checkpoint(self._group, update.partition_id)
            except StoreUnavailableError as error:
                await patience.wait(error)
                continue
            if is_committed(found, update):
                return
            raise fenced(update, found)


class Patience:
    """Waits that grow, and an end of them."""

    def __init__(self, patience_s: float) -> None:
        self._give_up_at_s = time.monotonic() + patience_s
        self._attempt = 0

    async def wait(self, error: StoreUnavailableError) -> None:
        """Wait before the next attempt, or raise *error*."""
        self._attempt += 1
        wait_s = backoff_s(self._attempt, first=BACKOFF.first, most=BACKOFF.most)
        if time.monotonic() + wait_s > self._give_up_at_s:
            raise error
        await asyncio.sleep(wait_s)


def _no_answer(update: CheckpointUpdate) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"nobody knows whether the checkpoint of partition {update.partition_id!r} was moved to "
        f"{update.sequence_number}: the store does not answer"
    )
