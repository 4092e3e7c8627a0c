"""Many processes on one machine, nothing to install: a group's records in one SQLite file.

Rule 1: every write reads the etag and writes the record within one ``BEGIN IMMEDIATE``
transaction, so no other process can come between.
Rule 2: the event loop never waits for the disk: all calls run in one thread of the store's own.
Rule 3: the clock is the machine's, read inside the transaction.
"""

import asyncio
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

from checkpointstores import _sqlite_records as records
from checkpointstores._names import require_partition_id
from checkpointstores._sqlite_file import as_store_error, connect
from eventproc.errors import ConfigurationError
from eventproc.logs import get_logger
from eventproc.membership import Member, MemberResult, MembershipSnapshot
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore

T = TypeVar("T")

_log = get_logger("eventproc.stores.sqlite")


def _now_us() -> int:
    return time.time_ns() // 1000


class _QueuedWrite(Generic[T]):
    """A write that waits for the thread, and then its outcome."""

    def __init__(self, work: Callable[[sqlite3.Connection, int], T]) -> None:
        self._work = work
        self.result: T | None = None
        self.error: ValueError | OverflowError | None = None

    def run(self, db: sqlite3.Connection) -> None:
        """Do the work; a value that SQLite cannot keep is refused without harm to the others."""
        db.execute("SAVEPOINT one")
        try:
            self.result = self._work(db, _now_us())
        except (ValueError, OverflowError) as error:
            db.execute("ROLLBACK TO one")
            self.error = error
        db.execute("RELEASE one")


class SqliteCheckpointStore(CheckpointStore):
    """Keeps records in a local file that any number of processes on the machine may open.

    A won write survives a crash of the process, of the machine, and a power cut. The file must
    be on a local disk: SQLite's locks do not work over network file systems.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout: timedelta = timedelta(seconds=5),
    ) -> None:
        """Nothing is opened yet.

        *busy_timeout* is how long one call waits for other processes' writes; beyond it a read
        raises ``StoreUnavailableError`` and a write is unknown.
        """
        if str(path) in {"", ":memory:"}:
            raise ConfigurationError(
                f"path is {str(path)!r}: give the path of a file, or use MemoryCheckpointStore"
            )
        if busy_timeout <= timedelta(0):
            raise ConfigurationError(f"busy_timeout is {busy_timeout}: give a positive time")
        self._path = Path(path)
        self._busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._queue: deque[_QueuedWrite[Any]] = deque()

    def __repr__(self) -> str:
        return f"SqliteCheckpointStore({str(self._path)!r})"

    async def open(self) -> None:
        if self._thread is not None:
            return
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="eventproc-sqlite")
        try:
            await self._in_thread(self._connect)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            # Shielded: a cancelled close must still let go of the file.
            closing = asyncio.get_running_loop().run_in_executor(thread, self._disconnect)
            await asyncio.shield(closing)
        finally:
            thread.shutdown(wait=False)

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        ownerships, as_of = await self._read(lambda db: records.list_ownership(db, group))
        return OwnershipSnapshot(ownerships=ownerships, as_of=as_of)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        for claim in claims:
            require_partition_id(claim.partition_id)
        if not claims:
            return []
        # One transaction for all: each still wins or loses by its own etag.
        results = await self._write(
            lambda db, now_us: [records.claim(db, group, claim, now_us) for claim in claims]
        )
        if results is None:
            return [ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN) for claim in claims]
        return results

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        members, as_of = await self._read(lambda db: records.list_members(db, group))
        return MembershipSnapshot(members=members, as_of=as_of)

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        result = await self._write(lambda db, now_us: records.announce(db, group, member, now_us))
        return result or MemberResult(outcome=WriteOutcome.UNKNOWN)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        result = await self._write(lambda db, _: records.withdraw(db, group, member))
        return result or WriteOutcome.UNKNOWN

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        checkpoints, _ = await self._read(lambda db: records.list_checkpoints(db, group))
        return checkpoints

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        require_partition_id(partition_id)
        checkpoint, _ = await self._read(
            lambda db: records.read_checkpoint(db, group, partition_id)
        )
        return checkpoint

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        require_partition_id(update.partition_id)
        result = await self._write(
            lambda db, now_us: records.update_checkpoint(db, group, update, now_us)
        )
        return result or CheckpointResult(outcome=WriteOutcome.UNKNOWN)

    # --- the thread ------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._connection = connect(self._path, busy_timeout_s=self._busy_timeout.total_seconds())

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        if self._thread is None:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        assert self._connection is not None
        self._connection.execute(begin)
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        finally:
            # Some errors end the transaction by themselves, so this cannot be an ``except``.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> tuple[T, datetime]:
        """Run *query* on one snapshot; also return the machine's time of that snapshot."""

        def read() -> tuple[T, datetime]:
            with self._transaction("BEGIN") as db:
                # The first read fixes what the transaction sees. The clock is read right after
                # it and before the records: a slow listing must not make them seem older.
                db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                as_of = records.instant(_now_us())
                return query(db), as_of

        try:
            return await self._in_thread(read)
        except sqlite3.Error as error:
            raise as_store_error(error, self._path) from error

    async def _write(self, work: Callable[[sqlite3.Connection, int], T]) -> T | None:
        """Run *work* in a transaction; ``None`` when nobody knows whether it was written."""
        queued = _QueuedWrite(work)
        self._queue.append(queued)
        # Whichever call comes to the thread first writes all that wait, and the disk is waited
        # for once. Calls keep their order, so afterwards this one is done, by this call or not.
        await self._in_thread(self._write_queued)
        if queued.error is not None:
            raise queued.error
        return queued.result

    def _write_queued(self) -> None:
        batch = [self._queue.popleft() for _ in range(len(self._queue))]
        if not batch:
            return
        try:
            with self._transaction("BEGIN IMMEDIATE") as db:
                for queued in batch:
                    queued.run(db)
        except sqlite3.Error as error:
            for queued in batch:
                queued.result = None
            _log.warning("store_write_unknown", path=str(self._path), error=str(error))
