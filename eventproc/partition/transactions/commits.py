"""Commits what a handler wrote together with the progress that belongs to it.

Rule 1: the commit is a checkpoint write. It waits for the one in flight, and none begins meanwhile.
Rule 2: progress is noted when the commit has succeeded, never before. Until then other writes of
checkpoints do not contain it.
Rule 3: if the checkpoint is not this pump's any more, or the outcome is not known, the pump ends.
The next one adopts the checkpoint, which shows what was committed and fences what was not.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
)
from datetime import timedelta

from eventproc.core.checkpoints import is_behind
from eventproc.errors import (
    CommitUnknownError,
    OwnershipLostError,
    PositionUnknownError,
    StoreUnavailableError,
)
from eventproc.logs import Logger, shown
from eventproc.models import (
    CheckpointResult,
    ConsumerGroup,
    ReceivedEvent,
    WriteOutcome,
)
from eventproc.partition.checkpointer import Checkpointer, Write
from eventproc.ports import Transaction, Transactions

Reported = Callable[[Write], Write]
"""Adds metrics to a write of a checkpoint."""


class Commits:
    """The transactions of one partition's handler. Runs on the processor's event loop."""

    def __init__(
        self,
        transactions: Transactions,
        checkpointer: Checkpointer,
        *,
        group: ConsumerGroup,
        partition_id: str,
        reported: Reported,
        idle_max: timedelta,
        log: Logger,
    ) -> None:
        """Begin none; *idle_max* is how long a suspended process may hold a transaction's locks."""
        self._transactions = transactions
        self._checkpointer = checkpointer
        self._group = group
        self._partition_id = partition_id
        self._reported = reported
        self._idle_max = idle_max
        self._log = log

    @asynccontextmanager
    async def begin(self, *, is_blocking: bool) -> AsyncIterator[Transaction]:
        """Open a transaction for as long as the block lasts; ``commit`` ends it before."""
        try:
            async with self._begun(is_blocking=is_blocking) as transaction:
                try:
                    yield transaction
                except OwnershipLostError:
                    raise
                except Exception as error:
                    if not transaction.is_broken:
                        raise
                    raise StoreUnavailableError(
                        "the connection was lost in a transaction, which is rolled back: "
                        f"{shown(error)}"
                    ) from error
        except OwnershipLostError:
            # After the rollback: the calls of a pump that is lost are cancelled.
            self._checkpointer.lose()
            raise

    @asynccontextmanager
    async def _begun(self, *, is_blocking: bool) -> AsyncIterator[Transaction]:
        begun = self._transactions.begin(is_blocking=is_blocking, idle_max=self._idle_max)
        if not self._transactions.is_exclusive:
            async with begun as transaction:
                yield transaction
            return
        # A checkpoint write would not be answered while the transaction is open.
        async with self._checkpointer.alone(), begun as transaction:
            yield transaction

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a block in which to commit: commits of one partition follow each other."""
        return nullcontext() if self._transactions.is_exclusive else self._checkpointer.alone()

    async def commit(
        self,
        transaction: Transaction,
        events: Sequence[ReceivedEvent],
        on_done: Callable[[int], object],
    ) -> None:
        """Commit a transaction, with these events as done. Call it in a ``turn``; never cancel it.

        Args:
            transaction: One that ``begin`` opened.
            events: In order; those that were done before do no harm.
            on_done: Called after they were noted as done, with what ``PartitionProgress.done``
                returned.

        Raises:
            OwnershipLostError: nothing was committed, or it is not known; the pump ends.
            PositionUnknownError: nothing was committed.
        """
        checkpointer = self._checkpointer
        snapshot = checkpointer.progress.after(events)
        handled_count = checkpointer.uncommitted.count
        if snapshot is None:
            raise PositionUnknownError(self._partition_id)
        if is_behind(snapshot.sequence_number, checkpointer.stored):
            raise self._end(None)
        update = checkpointer.update_of(snapshot)
        write = self._reported(lambda update: transaction.commit(self._group, update))
        result = await write(update)
        if result.outcome is not WriteOutcome.WON:
            raise self._end(result)
        # Other lanes may have made progress meanwhile, which this commit does not contain.
        is_newest = checkpointer.progress.revision == snapshot.revision
        done_count = checkpointer.progress.done_in_call(events)
        revision = checkpointer.progress.revision if is_newest else snapshot.revision
        checkpointer.confirm(update, result, revision, handled_count)
        on_done(done_count)

    def _end(self, result: CheckpointResult | None) -> OwnershipLostError:
        """Return the error by which ``begin`` ends the pump."""
        outcome = WriteOutcome.LOST if result is None else result.outcome
        error = None if result is None or result.error is None else str(result.error)
        self._log.warning("transaction_not_committed", outcome=outcome.value, error=error)
        if outcome is WriteOutcome.UNKNOWN:
            return CommitUnknownError(self._partition_id)
        return OwnershipLostError(self._partition_id)
