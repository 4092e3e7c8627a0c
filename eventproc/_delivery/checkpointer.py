"""Writes one partition's progress to the checkpoint store.

Rule 1: at most one write is in flight, and each carries the newest position, so progress made
during a write is stored by a single next write.
Rule 2: every write is conditional on the checkpoint that was read or written last. If the store has
another checkpoint, the pump verifies its lease. With a valid lease the next write is conditional on
that other checkpoint. If an operator moved it, the pump stops, and the next pump begins there.
Rule 3: a failing store loses no progress: the newest position is kept and written again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._base.tasks import is_cancelled, retrieve_outcome
from eventproc._core.delivery import checkpoints
from eventproc._core.delivery.coverage import Coverage, PendingProgress, UncommittedEvents
from eventproc._core.delivery.offset_format import is_of_other_format
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.config import CheckpointPolicy
from eventproc.errors import OwnershipLostError, StoreError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    SequenceRange,
    WriteOutcome,
)

Write = Callable[[CheckpointUpdate], Awaitable[CheckpointResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """The checkpoint of one partition in the store, as one pump may read and write it."""

    partition_id: str
    writer: str
    """Names the pump in each checkpoint that it writes."""

    read: Callable[[], Awaitable[Checkpoint | None]]
    write: Write
    verify: Callable[[], Awaitable[bool]]
    """Renews the lease; whether it is still held. Raises ``StoreError`` if that is not known."""

    reported: Callable[[Write], Write] = lambda write: write
    """Adds metrics to a function that writes the checkpoint; ``write`` has them."""


class Checkpointer:
    """Writes the progress of one pump. Runs on the processor's event loop."""

    def __init__(
        self,
        record: CheckpointRecord,
        progress: PartitionProgress,
        *,
        policy: CheckpointPolicy,
        wait_s: Callable[[int], float],
        log: Logger,
        is_exact: bool = False,
        on_stored: Callable[[int, Sequence[SequenceRange]], None] = lambda *_: None,
    ) -> None:
        """Write nothing before ``flush`` or ``run``.

        Args:
            record: The checkpoint to write.
            progress: What the checkpoint is to store.
            policy: When a write is due.
            wait_s: Seconds to wait after the n-th failed write in a row.
            log: Gets failed writes.
            is_exact: Whether the pump ends if another one wrote the checkpoint, even with a valid
                lease of its own; for handlers with transactions.
            on_stored: Called after each confirmed write, with its position and completed ranges.
        """
        self.record = record
        self.progress = progress
        self.coverage = Coverage(
            progress,
            UncommittedEvents(
                max_events=policy.max_events,
                interval=policy.interval,
                max_uncommitted_events=policy.max_uncommitted_events,
            ),
            partition_id=record.partition_id,
            writer=record.writer,
        )
        self._wait_s = wait_s
        self._log = log
        self._is_exact = is_exact
        self._on_stored = on_stored
        self._clock = asyncio.get_running_loop().time
        self._writing = asyncio.Lock()
        self._in_flight: asyncio.Future[CheckpointResult] | None = None
        self._wake = asyncio.Event()
        self._progressed = asyncio.Event()
        self._retry_now = asyncio.Event()  # set by a caller that waits for a write to be repeated
        self._is_lost = False
        self._failure = ConditionLogger(log, "checkpoint_failed", "checkpoint_recovered")
        self.refusal: StoreError | None = None
        """The error that an operator has to resolve: a refused or damaged checkpoint.

        ``None`` again as soon as the checkpoint is adopted or written.
        """

    @property
    def stored(self) -> Checkpoint | None:
        """The checkpoint as it was last confirmed."""
        return self.coverage.checkpoint

    @property
    def uncommitted_age_s(self) -> float:
        """Age in seconds of the oldest handled event that no checkpoint covers; 0 if none."""
        return self.coverage.uncommitted.age_s(self._clock())

    def adopt(self, checkpoint: Checkpoint | None) -> None:
        """Continue from this checkpoint: its former owner is fenced."""
        self.refusal = None
        self.coverage.checkpoint = checkpoint

    async def mark_former_hub(self) -> None:
        """Mark the checkpoint as one of a hub that was deleted, and write nothing after that.

        The mark tells the next owner (perhaps this processor) that the position is of the former
        hub, even when the new hub has grown beyond it. This retries until the mark is stored.

        Raises:
            OwnershipLostError: another processor owns the partition; it notices the new hub itself.
        """
        self.coverage.mark_former_hub()
        await self.flush()
        self.lose()

    def note(self, handled_count: int) -> None:
        """Count events towards the next write; the checkpoint policy decides when that is due."""
        if self.coverage.note(handled_count, self._clock()):
            self._wake.set()

    @property
    def has_room(self) -> bool:
        """Whether fewer than ``max_uncommitted_events`` are handled and not stored."""
        return self.coverage.uncommitted.has_room

    async def until_room(self) -> None:
        """Wait while ``max_uncommitted_events`` is reached, because the store fails.

        Raises:
            OwnershipLostError: another processor owns the partition, so nothing will be stored.
        """
        while not self.has_room:
            if self._is_lost:
                raise OwnershipLostError(self.record.partition_id)
            self._progressed.clear()
            await self._progressed.wait()

    async def run(self) -> None:
        """Write whenever the policy says so; return when the partition is lost."""
        while not self._is_lost:
            await self._until_due()
            with suppress(OwnershipLostError):
                await self.flush()

    async def _until_due(self) -> None:
        """Wait until a write is due, or the partition is lost.

        When a write is due, the time-out ends the wait; ``_wake`` only has it computed again.
        """
        while not self._is_lost:
            try:
                async with asyncio.timeout(self.coverage.uncommitted.due_in_s(self._clock())):
                    await self._wake.wait()
                    self._wake.clear()
            except TimeoutError:
                return

    async def flush(self, *, is_of_call: bool = False) -> None:
        """Return when all progress made before the call is stored; retry until it is.

        If another caller waits to repeat a failed write, that wait ends at once. *is_of_call*: a
        handler calls this, so the retries end when its call was cancelled, even if it suppressed
        the ``CancelledError``.

        Raises:
            OwnershipLostError: another processor owns the partition; nothing more is stored.
            CancelledError: the handler's call was cancelled before.
        """
        if not self.progress.has_position:
            return
        wanted = self.progress.revision
        self._retry_now.set()
        attempt = 0
        async with self._writing:
            self._retry_now.clear()
            while not self.coverage.covers(wanted):
                if self._is_lost:
                    raise OwnershipLostError(self.record.partition_id)
                if await self._write_newest():
                    continue
                if is_of_call and is_cancelled():
                    raise asyncio.CancelledError
                attempt += 1
                if await self._wait_to_repeat(attempt):
                    attempt = 0

    async def _wait_to_repeat(self, attempt: int) -> bool:
        """Back off; return whether another caller ended the wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s(attempt)):
                await self._retry_now.wait()
                self._retry_now.clear()
                return True
        return False

    def lose(self) -> None:
        """Write nothing more, and let waiting calls raise ``OwnershipLostError``."""
        self._is_lost = True
        self._wake.set()
        self._progressed.set()

    async def _write_newest(self) -> bool:
        """Try one write; return ``False`` if the caller should back off before the next one.

        ``True`` does not say that all is stored, or that the partition is not lost: ``flush`` asks
        for both again.
        """
        if self._in_flight is not None:  # A cancelled caller may have left one.
            await asyncio.wait([self._in_flight])
        pending = self.coverage.newest()
        if pending is None:
            return True
        if self.coverage.is_ahead_of(pending):  # Another writer's: a checkpoint never goes back.
            self._note_covered(pending, self.stored)
            return True
        update = self.coverage.update_of(pending)
        self._in_flight = asyncio.ensure_future(self._write_and_note(update, pending))
        self._in_flight.add_done_callback(retrieve_outcome)  # Its caller may have been cancelled.
        try:
            result = await asyncio.shield(self._in_flight)
        except StoreError as error:
            self._note_failure(error)
            return False
        if result.outcome is WriteOutcome.WON:
            return True
        is_known = await self._reread()
        if is_known and result.outcome is WriteOutcome.LOST:
            return True
        # The store may have this write (``UNKNOWN``), or it did not answer the read: again later.
        self._note_failure(result.error)
        return False

    async def _write_and_note(
        self, update: CheckpointUpdate, pending: PendingProgress
    ) -> CheckpointResult:
        """Write, and note what was stored: the caller may be cancelled before the answer comes."""
        result = await self.record.write(update)
        if result.outcome is WriteOutcome.WON:
            self.confirm(pending, result.checkpoint)
        return result

    def confirm(self, pending: PendingProgress, checkpoint: Checkpoint | None) -> None:
        """Note that a write of this progress was won; the store has this checkpoint now."""
        self._note_covered(pending, checkpoint)
        self._on_stored(pending.snapshot.sequence_number, pending.snapshot.completed)

    def _note_covered(self, pending: PendingProgress, checkpoint: Checkpoint | None) -> None:
        self._failure.end()
        self.refusal = None
        self.coverage.confirm(pending, checkpoint, self._clock())
        self._progressed.set()
        self._wake.set()  # The next write is due later than computed before.

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Run a block in which no other write is in flight; ``OwnershipLostError`` if lost."""
        async with self._writing:
            if self._in_flight is not None:
                await asyncio.wait([self._in_flight])
            if self._is_lost:
                raise OwnershipLostError(self.record.partition_id)
            yield

    async def _reread(self) -> bool:
        """Read the stored checkpoint again; return whether that succeeded.

        If another writer stored it, ownership is verified *after* the read: a processor that takes
        the partition later changes the ETag once more, so the next write here fails.
        """
        try:
            found = await self.record.read()
            if found is not None and checkpoints.is_moved_by_operator(found):
                self._log.warning(
                    "checkpoint_moved_by_operator", sequence_number=found.sequence_number
                )
                self.lose()
                return True
            if found is not None and is_of_other_format(found, self.progress.offset):
                self._log.error("offset_format_mismatched", offset=found.offset)
                self.lose()
                return True
            is_foreign = checkpoints.is_written_by_another(found, self.stored, self.coverage.writer)
            if is_foreign and (self._is_exact or not await self.record.verify()):
                self.lose()
                return True
        except StoreError as error:
            self._note_failure(error)
            return False
        if found is not None and found.writer != self.coverage.writer:
            self._log.warning("checkpoint_changed_elsewhere", sequence_number=found.sequence_number)
        self.coverage.checkpoint = found
        return True

    def _note_failure(self, error: StoreError | None) -> None:
        """Log the first failure in a row, and the first final refusal."""
        self.note_refusal(error)
        self._failure.note(
            is_error=self.refusal is not None, error=None if error is None else str(error)
        )

    def note_refusal(self, error: StoreError | None) -> None:
        """Note the error as ``refusal`` if an operator has to resolve it."""
        if error is not None and error.is_final:
            self.refusal = error
