"""One partition's progress on its way to the store.

Rule 1: at most one write is in flight, and each carries the newest position: what piled up
meanwhile goes in one write.
Rule 2: every write replaces exactly the checkpoint that was read or written last. If another
checkpoint stands there, ownership decides: whoever can prove, after reading that checkpoint, to own
the partition goes on. But if an operator moved it, nobody goes on from what was handled before.
Rule 3: a failing store loses nothing. The newest position waits here and is tried again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from eventproc.config import Backoff, CheckpointPolicy
from eventproc.core.numbering import numbering_in, numbering_of
from eventproc.core.policy import backoff_s, checkpoint_due_in_s, has_room
from eventproc.core.progress import adoption, first_mark, is_behind, is_moved_by_operator
from eventproc.errors import OwnershipLostError, StoreError
from eventproc.logs import Logger, shown
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a partition is handled, with the state of that moment."""

    sequence_number: int
    offset: str
    state: bytes | None
    completed: tuple[SequenceRange, ...] = ()
    """What is handled above ``sequence_number``: sorted, disjoint, ``COMPLETED_RANGES_MAX``."""

    delivery_count: int = 0
    """0 for a position that was reached, or is left in good order."""


class Checkpointer:
    """Writes the progress of one pump. Lives on the processor's loop."""

    def __init__(
        self,
        partition_id: str,
        *,
        writer: str,
        read: Read,
        write: Write,
        verify: Verify,
        policy: CheckpointPolicy,
        backoff: Backoff,
        log: Logger,
    ) -> None:
        self._partition_id = partition_id
        self._writer = writer
        self._read = read
        self._write = write
        self._verify = verify
        self._policy = policy
        self._backoff = backoff
        self._log = log
        self._stored: Checkpoint | None = None
        self._pending: Progress | None = None
        self._noted_count = 0
        self._stored_count = 0
        """How many notes were taken, and how many of them the store is known to cover."""
        self._handled_count = 0
        self._oldest_at_s = 0.0
        self._clock = asyncio.get_running_loop().time
        self._writing = asyncio.Lock()
        self._in_flight: asyncio.Future[CheckpointResult] | None = None
        self._wake = asyncio.Event()
        self._progressed = asyncio.Event()
        self._is_lost = False
        self._is_failing = False

    @property
    def stored(self) -> Checkpoint | None:
        """The checkpoint as it was last confirmed."""
        return self._stored

    @property
    def unwritten_age_s(self) -> float:
        """For how long the oldest handled event waits that no checkpoint covers; 0: none does."""
        return self._clock() - self._oldest_at_s if self._handled_count else 0.0

    async def adopt(self, *, is_from_first: bool = False) -> Checkpoint | None:
        """Read the checkpoint that the former owner left, and shut that owner out.

        Returns the checkpoint to start from, as it is stored now. Retries until the store answers.

        Args:
            is_from_first: Whether to begin at the first event, where there is no checkpoint. That
                can be written down, so that a former owner is shut out there, too.

        Raises:
            OwnershipLostError: the partition went on to somebody else meanwhile.
        """
        attempt = 0
        while True:
            result = await self._try_adopt(is_from_first=is_from_first)
            if result.outcome is WriteOutcome.WON:
                self._stored = result.checkpoint
                self._pending = _progress(result.checkpoint)
                return result.checkpoint
            if result.outcome is WriteOutcome.LOST and not await self._still_owned():
                raise OwnershipLostError(self._partition_id)
            attempt += 1
            await self._wait(attempt)

    async def _try_adopt(self, *, is_from_first: bool) -> CheckpointResult:
        try:
            found = await self._read()
            update = adoption(found, self._writer)
            if found is None and is_from_first:
                update = first_mark(self._partition_id, self._writer)
            if update is None:
                return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=found)
            # Proven after the reading; else this could shut out whoever took over before it.
            if not await self._verify():
                raise OwnershipLostError(self._partition_id)
            return await self._write(update)
        except StoreError:
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN)

    def note(self, progress: Progress, handled_count: int) -> None:
        """Take down progress; the policy decides when it is written.

        What was noted before is not written again.
        """
        if progress == self._pending:
            return
        now_s = asyncio.get_running_loop().time()
        if self._handled_count == 0:
            self._oldest_at_s = now_s
        is_first = self._handled_count == 0
        self._handled_count += handled_count
        self._noted_count += 1
        self._pending = progress
        # Further notes do not change when the oldest is due, unless they are enough by now.
        if is_first or self._is_enough:
            self._wake.set()

    @property
    def has_room(self) -> bool:
        """Whether more may be handled, though the store may fail."""
        policy = self._policy
        return has_room(
            self._handled_count, policy.every_events, policy.every, policy.unwritten_events_max
        )

    @property
    def _is_enough(self) -> bool:
        """Whether so much is handled that it has to be written, whatever its age."""
        every_events = self._policy.every_events
        return (
            every_events is not None and self._handled_count >= every_events
        ) or not self.has_room

    async def until_room(self) -> None:
        """Wait while too much of what was handled is not stored, because the store fails.

        Raises:
            OwnershipLostError: the partition belongs to somebody else; there will be no room.
        """
        while not self.has_room:
            if self._is_lost:
                raise OwnershipLostError(self._partition_id)
            self._progressed.clear()
            await self._progressed.wait()

    async def run(self) -> None:
        """Write for ever what the policy calls due; ends when nothing may be written any more."""
        while not self._is_lost:
            await self._until_due()
            try:
                await self.flush()
            except OwnershipLostError:
                return

    async def _until_due(self) -> None:
        """Wait until the policy wants a write."""
        loop = asyncio.get_running_loop()
        while True:
            due_in_s = checkpoint_due_in_s(
                handled_count=self._handled_count,
                oldest_age_s=loop.time() - self._oldest_at_s,
                every_events=self._policy.every_events,
                every=self._policy.every,
                unwritten_events_max=self._policy.unwritten_events_max,
            )
            try:
                async with asyncio.timeout(due_in_s):
                    await self._wake.wait()
                    self._wake.clear()
            except TimeoutError:
                return

    async def flush(self) -> None:
        """Return when everything noted before the call is stored; retry until it is.

        Raises:
            OwnershipLostError: the partition belongs to somebody else; nothing more is stored.
        """
        wanted_count = self._noted_count
        attempt = 0
        async with self._writing:
            while self._stored_count < wanted_count:
                if self._is_lost:
                    raise OwnershipLostError(self._partition_id)
                if await self._write_newest():
                    self._note_success()
                    continue
                attempt += 1
                await self._wait(attempt)

    def lose(self) -> None:
        """The partition is lost: nothing more is written, and whoever waits is told."""
        self._is_lost = True
        self._wake.set()
        self._progressed.set()

    async def _write_newest(self) -> bool:
        """Try one write; return whether to go on at once, with it written or not."""
        progress, noted_count, handled_count = self._pending, self._noted_count, self._handled_count
        assert progress is not None, "there is something to write"
        if is_behind(progress.sequence_number, self._stored):
            self._note_stored(noted_count, handled_count)  # Somebody else went further.
            return True
        update = CheckpointUpdate(
            partition_id=self._partition_id,
            offset=progress.offset,
            sequence_number=progress.sequence_number,
            state=progress.state,
            completed=progress.completed,
            delivery_count=progress.delivery_count,
            replaces=self._stored,
            writer=self._writer,
        )
        try:
            result = await self._write_alone(update)
        except Exception as error:  # noqa: BLE001 - a store of the user's may raise anything
            self._note_failure(error)
            return False
        if result.outcome is WriteOutcome.WON:
            self._stored = result.checkpoint
            self._note_stored(noted_count, handled_count)
            return True
        is_known = await self._learn()
        if is_known and result.outcome is WriteOutcome.LOST:
            return True
        self._note_failure(None)
        return False

    async def _write_alone(self, update: CheckpointUpdate) -> CheckpointResult:
        """Write once nothing is in flight: a caller that was cancelled may have left a write."""
        if self._in_flight is not None:
            await asyncio.wait([self._in_flight])
        self._in_flight = asyncio.ensure_future(self._write(update))
        self._in_flight.add_done_callback(_retrieve)
        return await asyncio.shield(self._in_flight)

    def _note_stored(self, noted_count: int, handled_count: int) -> None:
        self._stored_count = noted_count
        self._handled_count -= handled_count
        self._oldest_at_s = asyncio.get_running_loop().time()
        self._progressed.set()
        self._wake.set()  # what is left is due later than was thought

    async def _learn(self) -> bool:
        """Learn what stands in the store now; return whether that succeeded.

        Where somebody else wrote it, ownership is proven *after* it was read: who takes the
        partition later than that changes the etag once more, so that the next write here fails.
        """
        try:
            found = await self._read()
            if found is not None and is_moved_by_operator(found):
                self._log.warning(
                    "checkpoint_moved_by_operator", sequence_number=found.sequence_number
                )
                self.lose()
                return True
            if self._is_numbered_otherwise(found):
                assert found is not None, "it has a number"
                self._log.error("checkpoint_of_another_numbering", offset=found.offset)
                self.lose()
                return True
            if self._is_of_another(found) and not await self._verify():
                self.lose()
                return True
        except Exception as error:  # noqa: BLE001 - as above
            self._note_failure(error)
            return False
        if found is not None and found.writer != self._writer:
            self._log.warning("checkpoint_changed_elsewhere", sequence_number=found.sequence_number)
        self._stored = found
        return True

    def _is_of_another(self, found: Checkpoint | None) -> bool:
        """Whether it is neither what was known nor a write of this pump."""
        known_etag = None if self._stored is None else self._stored.etag
        if found is None:
            return known_etag is not None
        return found.etag != known_etag and found.writer != self._writer

    def _is_numbered_otherwise(self, found: Checkpoint | None) -> bool:
        """Whether a processor that reads over another protocol wrote it: no number compares."""
        if found is None or self._pending is None:
            return False
        mine, other = numbering_of(self._pending.offset), numbering_in(found)
        return None not in {mine, other} and mine is not other

    async def _still_owned(self) -> bool:
        try:
            return await self._verify()
        except StoreError:
            return True

    async def _wait(self, attempt: int) -> None:
        await asyncio.sleep(backoff_s(attempt, first=self._backoff.first, most=self._backoff.most))

    def _note_failure(self, error: Exception | None) -> None:
        """Say once that the store fails; aloud, if in a way that no store should."""
        if self._is_failing:
            return
        self._is_failing = True
        if error is None or isinstance(error, StoreError):
            self._log.warning("checkpoint_delayed", error=None if error is None else str(error))
        else:
            self._log.error("checkpoint_delayed", error=shown(error), exc_info=error)

    def _note_success(self) -> None:
        if self._is_failing:
            self._log.info("checkpoint_recovered")
        self._is_failing = False


def _retrieve(write: asyncio.Future[CheckpointResult]) -> None:
    """Look at how a write ended that nobody may wait for any more."""
    if not write.cancelled():
        write.exception()


def _progress(checkpoint: Checkpoint | None) -> Progress | None:
    """What a stored checkpoint says, if that is complete."""
    if checkpoint is None or checkpoint.offset is None or checkpoint.sequence_number is None:
        return None
    return Progress(
        sequence_number=checkpoint.sequence_number,
        offset=checkpoint.offset,
        state=checkpoint.state,
        completed=checkpoint.completed,
        delivery_count=checkpoint.delivery_count,
    )
