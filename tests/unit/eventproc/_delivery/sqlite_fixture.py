"""One partition whose handler writes in transactions of a SQLite file."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import CheckpointPolicy
from eventproc._base.logs import get_logger
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.checkpointer import Checkpointer, CheckpointRecord
from eventproc._delivery.commits import Commits
from eventproc.models import ConsumerGroup
from tests.unit.eventproc._core.events import events

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
LOG = get_logger("eventproc.test")


class Partition:
    """A partition in a SQLite file: its checkpointer, and the transactions of its handler."""

    def __init__(self, store, *, has_state):
        self.store = store
        self.written = []
        """The positions of all writes of the commits, as metrics are told of them."""

        self.sent = []
        """The positions of all other writes that were sent to the store."""

        self.progress = PartitionProgress(has_state=has_state)
        self.checkpointer = Checkpointer(
            CheckpointRecord(
                partition_id="0",
                writer="a/1/1",
                read=self.stored,
                write=self._write,
                verify=self._verify,
                reported=self._reported,
            ),
            self.progress,
            policy=CheckpointPolicy.manual(),
            wait_s=lambda _: 0.0,
            log=LOG,
            is_exact=True,
        )
        self.transactions = store.transactions()
        self.commits = Commits(
            self.transactions,
            self.checkpointer,
            group=GROUP,
            idle_max=timedelta(seconds=30),
            log=LOG,
        )

    async def stored(self):
        """Return the stored checkpoint."""
        return await self.store.read_checkpoint(GROUP, "0")

    async def _write(self, update):
        self.sent.append(update.sequence_number)
        return await self.store.update_checkpoint(GROUP, update)

    async def _verify(self):
        return True

    def _reported(self, write):
        async def reported(update):
            self.written.append(update.sequence_number)
            return await write(update)

        return reported

    async def commit(self, numbers, in_block=None):
        """Commit these events in a transaction of their own; return the number that it reports.

        *in_block* is called in a thread before that.
        """
        counts: list[int] = []
        async with self.commits.begin(is_blocking=False) as transaction:
            if in_block is not None:
                await asyncio.to_thread(in_block)
            await self.commits.commit(transaction, events(numbers), counts.append)
        return counts


@asynccontextmanager
async def begun(path, *, has_state=True, received=range(1, 11)):
    """A partition that begins after event 0 and has received some events."""
    async with SqliteCheckpointStore(path) as store:
        partition = Partition(store, has_state=has_state)
        partition.progress.pin(0, "o0")
        partition.progress.touch()
        await partition.checkpointer.flush()
        partition.progress.admit(events(received))
        yield partition
        await partition.transactions.close()
