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
from dataclasses import replace
from datetime import timedelta

from eventproc._base.logs import Logger, error_text
from eventproc._delivery.checkpointer import Checkpointer
from eventproc.errors import (
    CommitUnknownError,
    OwnershipLostError,
    PositionUnknownError,
    StoreUnavailableError,
)
from eventproc.models import CheckpointResult, ConsumerGroup, ReceivedEvent, WriteOutcome
from eventproc.ports import Transaction, Transactions


class Commits:
    """The transactions of one partition's handler. Runs on the processor's event loop."""

    def __init__(
        self,
        transactions: Transactions,
        checkpointer: Checkpointer,
        *,
        group: ConsumerGroup,
        idle_max: timedelta,
        log: Logger,
    ) -> None:
        """Begin none; *idle_max* is how long a suspended process may hold a transaction's locks."""
        self._transactions = transactions
        self._checkpointer = checkpointer
        self._group = group
        self._record = checkpointer.record
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
                        f"{error_text(error)}"
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
        progress, coverage = self._checkpointer.progress, self._checkpointer.coverage
        snapshot = progress.after(events)
        if snapshot is None:
            raise PositionUnknownError(self._record.partition_id)
        pending = coverage.pending(snapshot)
        if coverage.is_ahead_of(pending):
            raise self._end(None)
        commit = self._record.reported(lambda update: transaction.commit(self._group, update))
        result = await commit(coverage.update_of(pending))
        if result.outcome is not WriteOutcome.WON:
            raise self._end(result)
        # Other lanes may have made progress meanwhile, which this commit does not contain.
        is_newest = progress.revision == snapshot.revision
        done_count = progress.done_in_call(events)
        if is_newest:
            snapshot = replace(snapshot, revision=progress.revision)
        self._checkpointer.confirm(replace(pending, snapshot=snapshot), result.checkpoint)
        on_done(done_count)

    def _end(self, result: CheckpointResult | None) -> OwnershipLostError:
        """Return the error by which ``begin`` ends the pump."""
        outcome = WriteOutcome.LOST if result is None else result.outcome
        error = None if result is None or result.error is None else str(result.error)
        self._log.warning("transaction_not_committed", outcome=outcome.value, error=error)
        if outcome is WriteOutcome.UNKNOWN:
            return CommitUnknownError(self._record.partition_id)
        return OwnershipLostError(self._record.partition_id)
