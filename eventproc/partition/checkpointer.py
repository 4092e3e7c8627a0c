"""Writes one partition's progress to the checkpoint store.

Rule 1: at most one write is in flight, and each carries the newest position, so progress made
during a write is stored by a single next write.
Rule 2: every write is conditional on the checkpoint that was read or written last. If the store has
another one, the pump verifies its lease, and if that is valid, continues with the other one's ETag.
If an operator moved the checkpoint, the pump stops, and the next one begins at the new position.
Rule 3: a failing store loses no progress: the newest position is kept and written again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from eventproc.concurrency.tasks import is_cancelled, retrieve_outcome
from eventproc.config import CheckpointPolicy, RecreatedHub
from eventproc.core import checkpoints
from eventproc.core.offset_format import is_of_other_format
from eventproc.core.progress import PartitionProgress
from eventproc.core.snapshot import ProgressSnapshot
from eventproc.core.uncommitted import UncommittedEvents
from eventproc.errors import (
    HubRecreatedError,
    OwnershipLostError,
    StoreError,
    StoreUnavailableError,
)
from eventproc.logs import ConditionLogger, Logger
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    SequenceRange,
    WriteOutcome,
)

Read = Callable[[], Awaitable[Checkpoint | None]]
Write = Callable[[CheckpointUpdate], Awaitable[CheckpointResult]]
Verify = Callable[[], Awaitable[bool]]


class Checkpointer:
    """Writes the progress of one pump. Runs on the processor's event loop."""

    def __init__(
        self,
        partition_id: str,
        progress: PartitionProgress,
        *,
        writer: str,
        read: Read,
        write: Write,
        verify: Verify,
        policy: CheckpointPolicy,
        recreated_hub: RecreatedHub = RecreatedHub.STOP,
        wait_s: Callable[[int], float],
        log: Logger,
    ) -> None:
        self.on_stored: Callable[[int, Sequence[SequenceRange]], None] = lambda *_: None
        """Called after each confirmed write, with its position and completed ranges."""

        self.progress = progress
        self._partition_id = partition_id
        self._writer = writer
        self._read = read
        self._write = write
        self.verify = verify
        self._recreated_hub = recreated_hub
        self._recreation = ConditionLogger(log, "hub_recreated", "hub_recreation_resolved")
        self._wait_s = wait_s
        self._log = log
        self.stored: Checkpoint | None = None
        """The checkpoint as it was last confirmed."""
        self.is_adopted_from_operator = False
        """Whether an operator moved the checkpoint that was adopted, since its last owner."""
        self._noted_revision = self._stored_revision = progress.revision
        """The revisions of the progress that ``note`` counted last, and that is stored."""
        self.uncommitted = UncommittedEvents(
            max_events=policy.max_events,
            interval=policy.interval,
            max_uncommitted_events=policy.max_uncommitted_events,
        )
        """The events that ``note`` counted and no checkpoint covers."""
        self._clock = asyncio.get_running_loop().time
        self._writing = asyncio.Lock()
        self._in_flight: asyncio.Future[CheckpointResult] | None = None
        self._wake = asyncio.Event()
        self._progressed = asyncio.Event()
        self._retry_now = asyncio.Event()  # set by a caller that waits for a write to be repeated
        self._is_lost = False
        self._failure = ConditionLogger(log, "checkpoint_failed", "checkpoint_recovered")
        self.is_exact = False
        """Whether the pump ends if another one wrote the checkpoint, even with a valid lease of its
        own; for handlers with transactions."""
        self.refusal: StoreError | None = None
        """The error that an operator has to resolve: a refused or damaged checkpoint.

        ``None`` again as soon as the checkpoint is adopted or written.
        """

    @property
    def uncommitted_age_s(self) -> float:
        """Age in seconds of the oldest handled event that no checkpoint covers; 0 if none."""
        return self.uncommitted.age_s(self._clock())

    async def adopt(
        self, *, is_from_first: bool = False, hub_created_at: datetime | None = None
    ) -> Checkpoint | None:
        """Read the former owner's checkpoint and write it back, which fences that owner.

        Returns the checkpoint to start from, as it is stored now.

        Args:
            is_from_first: Whether reading begins at the first event if there is no checkpoint.
                Then one is written (offset -1), so that a former owner is fenced in that case too.
            hub_created_at: When the hub was created, if the source says; an older checkpoint is of
                another hub.

        Raises:
            OwnershipLostError: another processor owns the partition by now.
            HubRecreatedError: the checkpoint is of a hub that was deleted, and the policy is to
                stop. It was not adopted.
            StoreError: the outcome is not known, or the store refused; call again. If ``refusal``
                is the same error, that succeeds only after an operator has acted.
        """
        attempt = 0
        try:
            while True:
                result = await self._try_adopt(hub_created_at, is_from_first=is_from_first)
                if result.outcome is WriteOutcome.WON:
                    break
                if result.outcome is WriteOutcome.UNKNOWN:
                    raise result.error or StoreUnavailableError(
                        f"the store did not say whether the checkpoint of partition "
                        f"{self._partition_id!r} was taken over"
                    )
                attempt += 1
                await self._wait_to_repeat(attempt)
        except StoreError as error:
            self._note_refusal(error)
            raise
        self.refusal = None
        self._recreation.end()
        self.stored = result.checkpoint
        return result.checkpoint

    async def _try_adopt(
        self, hub_created_at: datetime | None, *, is_from_first: bool
    ) -> CheckpointResult:
        found = await self._read()
        # Stays true if the answer to the adoption is lost, and what is read next is our own write.
        self.is_adopted_from_operator |= found is not None and checkpoints.is_moved_by_operator(
            found
        )
        update = checkpoints.adoption(found, self._writer)
        if found is not None and checkpoints.is_of_former_hub(found, hub_created_at):
            policy, number = self._recreated_hub, found.sequence_number
            is_stopped = policy is RecreatedHub.STOP
            self._recreation.note(is_error=is_stopped, policy=policy.value, sequence_number=number)
            if is_stopped:
                is_older = checkpoints.is_older_than_hub(found, hub_created_at)
                raise HubRecreatedError(self._partition_id, number, is_older_than_hub=is_older)
            update = checkpoints.restart_in_new_hub(found, self._writer)
        if found is None and is_from_first:
            update = checkpoints.initial_checkpoint(self._partition_id, self._writer)
        if update is None:
            return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=found)
        # Verified after the read: otherwise this write could fence a newer owner.
        if not await self.verify():
            raise OwnershipLostError(self._partition_id)
        return await self._write(update)

    async def mark_former_hub(self) -> None:
        """Mark the checkpoint as one of a hub that was deleted, and write nothing after that.

        The mark tells the next owner (perhaps this processor) that the position is of the former
        hub, even when the new hub has grown beyond it. This retries until the mark is stored.

        Raises:
            OwnershipLostError: another processor owns the partition; it notices the new hub itself.
        """
        self._writer = checkpoints.former_hubs_writer(self._writer)
        self.progress.touch()
        await self.flush()
        self.lose()

    def note(self, handled_count: int) -> None:
        """Count events towards the next write; the checkpoint policy decides when that is due.

        This counts nothing if there is no progress since the last call, or none that can be stored.
        """
        progress = self.progress
        if progress.revision <= self._noted_revision or not progress.has_position:
            return
        is_first = self.uncommitted.count == 0
        self.uncommitted.add(handled_count, self._clock())
        self._noted_revision = progress.revision
        # Later notes do not change when the write is due, unless ``max_events`` is reached.
        if is_first or self.uncommitted.due_in_s(self._clock()) == 0:
            self._wake.set()

    async def until_room(self) -> None:
        """Wait while ``max_uncommitted_events`` is reached, because the store fails.

        Raises:
            OwnershipLostError: another processor owns the partition, so nothing will be stored.
        """
        while not self.uncommitted.has_room:
            if self._is_lost:
                raise OwnershipLostError(self._partition_id)
            self._progressed.clear()
            await self._progressed.wait()

    async def run(self) -> None:
        """Write whenever the policy says so; return when the partition is lost."""
        while not self._is_lost:
            await self._until_due()
            with suppress(OwnershipLostError):
                await self.flush()

    async def _until_due(self) -> None:
        """Wait until a write is due, or the partition is lost."""
        while not self._is_lost:
            try:
                async with asyncio.timeout(self.uncommitted.due_in_s(self._clock())):
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
            while self._stored_revision < wanted:
                if self._is_lost:
                    raise OwnershipLostError(self._partition_id)
                if await self._write_newest():
                    self._note_success()
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
        """Try one write; return ``False`` if the caller should back off before the next one."""
        if self._in_flight is not None:  # A cancelled caller may have left one.
            await asyncio.wait([self._in_flight])
        progress, handled_count = self.progress.snapshot(), self.uncommitted.count
        assert progress is not None, "there is a position to write"
        if progress.revision == self._stored_revision:
            return True
        if checkpoints.is_behind(progress.sequence_number, self.stored):
            # The stored position is further on.
            self._note_stored(progress.revision, handled_count)
            return True
        self._in_flight = asyncio.ensure_future(
            self._write_and_note(self.update_of(progress), progress.revision, handled_count)
        )
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
        self._note_failure(result.error)
        return False

    async def _write_and_note(
        self, update: CheckpointUpdate, revision: int, handled_count: int
    ) -> CheckpointResult:
        """Write, and note what was stored: the caller may be cancelled before the answer comes."""
        result = await self._write(update)
        if result.outcome is WriteOutcome.WON:
            self.confirm(update, result, revision, handled_count)
        return result

    def update_of(self, progress: ProgressSnapshot) -> CheckpointUpdate:
        """Return the write that stores this progress in place of the stored checkpoint."""
        return progress.update(self._partition_id, self.stored, self._writer)

    def confirm(
        self, update: CheckpointUpdate, result: CheckpointResult, revision: int, handled_count: int
    ) -> None:
        """Note that a write was won, which contains the progress of this revision."""
        self.stored = result.checkpoint
        self._note_stored(revision, handled_count)
        self.on_stored(update.sequence_number, update.completed)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Run a block in which no other write is in flight; ``OwnershipLostError`` if lost."""
        async with self._writing:
            if self._in_flight is not None:
                await asyncio.wait([self._in_flight])
            if self._is_lost:
                raise OwnershipLostError(self._partition_id)
            yield

    def _note_stored(self, revision: int, handled_count: int) -> None:
        self._stored_revision = revision
        self._noted_revision = max(revision, self._noted_revision)
        self.uncommitted.remove(handled_count, self._clock())
        self._progressed.set()
        self._wake.set()  # The next write is due later than computed before.

    async def _reread(self) -> bool:
        """Read the stored checkpoint again; return whether that succeeded.

        If another writer stored it, ownership is verified *after* the read: a processor that takes
        the partition later changes the ETag once more, so the next write here fails.
        """
        try:
            found = await self._read()
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
            is_foreign = checkpoints.is_written_by_another(found, self.stored, self._writer)
            if is_foreign and (self.is_exact or not await self.verify()):
                self.lose()
                return True
        except StoreError as error:
            self._note_failure(error)
            return False
        if found is not None and found.writer != self._writer:
            self._log.warning("checkpoint_changed_elsewhere", sequence_number=found.sequence_number)
        self.stored = found
        return True

    def _note_failure(self, error: StoreError | None) -> None:
        """Log the first failure in a row, and the first final refusal."""
        self._note_refusal(error)
        self._failure.note(
            is_error=self.refusal is not None, error=None if error is None else str(error)
        )

    def _note_refusal(self, error: StoreError | None) -> None:
        if error is not None and error.is_final:
            self.refusal = error

    def _note_success(self) -> None:
        self._failure.end()
        self.refusal = None
