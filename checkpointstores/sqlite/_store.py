"""The checkpoint store in a SQLite file, for any number of processes on one machine.

Rule 1: every write reads the ETag and writes the record within one ``BEGIN IMMEDIATE``
transaction, so no other process can write in between.
Rule 2: the event loop never waits for the disk, because all calls run in a thread of the store.
Rule 3: the time is that of a clock in the file, read inside the transaction (``_clock.py``).
Rule 4: after each transaction the path must still lead to the file that was opened.
"""

import asyncio
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

from checkpointstores._fields import require_partition_id
from checkpointstores.sqlite import _records as records
from checkpointstores.sqlite._clock import HostClock
from checkpointstores.sqlite._file import OpenFile, open_file
from checkpointstores.sqlite._tables import instant
from checkpointstores.sqlite._transactions import SqliteTransactions
from eventproc._base.logs import ConditionLogger, get_logger
from eventproc._base.settings import PositiveSpan, checked
from eventproc._base.tasks import retrieve_outcome
from eventproc.errors import (
    ConfigurationError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberResult,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
    RecordResult,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore, Transactions

T = TypeVar("T")

_log = get_logger("eventproc.stores.sqlite")


class _QueuedWrite(Generic[T]):
    """A write that waits for the thread, and its outcome."""

    def __init__(self, work: Callable[[sqlite3.Connection, int], T]) -> None:
        self._work = work
        self.result: T
        """Set when the write has run without an error."""

        self.error: Exception | None = None

    def run(self, db: sqlite3.Connection, now_us: int) -> None:
        """Run the write in a savepoint. A value that SQLite cannot store fails this write only."""
        db.execute("SAVEPOINT one")
        try:
            self.result = self._work(db, now_us)
        except (ValueError, OverflowError) as error:
            db.execute("ROLLBACK TO one")
            self.error = error
        db.execute("RELEASE one")


class SqliteCheckpointStore(CheckpointStore):
    """Keeps records in a local file that any number of processes on one machine may open.

    A won write survives a crash of the process, of the machine, and a power cut. The file must
    be on a local disk: SQLite's locks do not work over network file systems.
    """

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout: PositiveSpan = timedelta(seconds=5),
        _host_clock: HostClock | None = None,
    ) -> None:
        """Build the store; ``open`` opens the file.

        Args:
            path: The file; it is created if it does not exist.
            busy_timeout: How long a call waits for other processes' writes. After that a read
                raises ``StoreUnavailableError``, and the outcome of a write is unknown.
            _host_clock: The clocks of this process, for tests.
        """
        if str(path) in {"", ":memory:"}:
            raise ConfigurationError(
                f"path is {str(path)!r}: give the path of a file, or use MemoryCheckpointStore"
            )
        self._path = Path(path)
        self._host_clock = _host_clock or HostClock()
        self._busy_timeout = busy_timeout
        self._file_by_thread: dict[int, OpenFile] = {}
        """A thread closes its own: that of a close that was cut off ends after the next open."""

        self._thread: ThreadPoolExecutor | None = None
        self._unknown = ConditionLogger(_log, "store_write_unknown", "store_write_known_again")
        self._queue: deque[_QueuedWrite[Any]] = deque()

    def __repr__(self) -> str:
        return f"SqliteCheckpointStore({str(self._path)!r})"

    async def open(self) -> None:
        if self._thread is not None:
            return
        self._queue = deque()
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
            # Shielded: a cancelled close must still close the file.
            closing = asyncio.get_running_loop().run_in_executor(thread, self._disconnect)
            closing.add_done_callback(retrieve_outcome)  # A cancelled caller retrieves no error.
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
        try:
            return await self._write(
                lambda db, now_us: [records.claim(db, group, claim, now_us) for claim in claims]
            )
        except StoreError as error:
            unknown = WriteOutcome.UNKNOWN
            return [ClaimResult(claim=claim, outcome=unknown, error=error) for claim in claims]

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        (members, etags), as_of = await self._read(
            lambda db: (records.list_members(db, group), records.list_records(db, group))
        )
        return MembershipSnapshot(members=members, as_of=as_of, record_etags=etags)

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        try:
            return await self._write(lambda db, now_us: records.announce(db, group, member, now_us))
        except StoreError as error:
            return MemberResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        try:
            return await self._write(lambda db, _: records.withdraw(db, group, member))
        except StoreError:
            return WriteOutcome.UNKNOWN

    async def list_groups(self, hub_of: ConsumerGroup | None = None) -> Sequence[ConsumerGroup]:
        groups, _ = await self._read(lambda db: records.list_groups(db, hub_of))
        return groups

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
        try:
            return await self._write(
                lambda db, now_us: records.update_checkpoint(db, group, update, now_us)
            )
        except StoreError as error:
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        record, _ = await self._read(lambda db: records.read_record(db, group, name))
        return record

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        try:
            return await self._write(lambda db, _: records.write_record(db, group, record))
        except StoreError as error:
            return RecordResult(outcome=WriteOutcome.UNKNOWN, error=error)

    def transactions(self) -> Transactions:
        return SqliteTransactions(self._another)

    # --- the thread ------------------------------------------------------------------------------

    def _connect(self) -> None:
        try:
            self._file_by_thread[threading.get_ident()] = self._another()
        except StoreCorruptError as error:
            raise ConfigurationError(str(error)) from error

    def _another(self) -> OpenFile:
        """Open the file, beside the connection of this store if there is one."""
        timeout_s = self._busy_timeout.total_seconds()
        path = self._path.absolute()
        return open_file(path, self._host_clock, busy_timeout_s=timeout_s, log=_log)

    def _opened_file(self) -> OpenFile:
        file = self._file_by_thread.get(threading.get_ident())
        if file is None:
            raise _not_open()
        return file

    def _disconnect(self) -> None:
        file = self._file_by_thread.pop(threading.get_ident(), None)
        if file is not None:
            file.connection.close()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        if self._thread is None:
            raise _not_open()
        run = copy_context().run  # For what the thread logs.
        return await asyncio.get_running_loop().run_in_executor(self._thread, run, call)

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> tuple[T, datetime]:
        """Run *query* on one snapshot; also return the store's time of that snapshot."""

        def read() -> tuple[T, datetime]:
            file = self._opened_file()
            with file.transaction("BEGIN") as db:
                # The first read fixes the transaction's snapshot. Read the clock first: after a
                # slow listing the records would appear older than they are.
                as_of = instant(file.clock.now_us(db))
                return query(db), as_of

        return await self._in_thread(read)

    async def _write(self, work: Callable[[sqlite3.Connection, int], T]) -> T:
        """Run *work* in a transaction.

        Raises:
            StoreError: it is not known whether it was written.
        """
        if self._thread is None:  # Otherwise it would be written after the next open.
            raise _not_open()
        queued = _QueuedWrite(work)
        self._queue.append(queued)
        # The first call to reach the thread runs all queued writes in one transaction, with one
        # wait for the disk. Calls keep their order, so after this line this write has been run.
        await self._in_thread(self._write_queued)
        if queued.error is not None:
            raise queued.error
        return queued.result

    def _write_queued(self) -> None:
        batch = [self._queue.popleft() for _ in range(len(self._queue))]
        if not batch:
            return
        file = self._opened_file()
        try:
            with file.transaction("BEGIN IMMEDIATE") as db:
                now_us = file.clock.advance(db)
                for queued in batch:
                    queued.run(db, now_us)
        except StoreError as error:
            for queued in batch:
                queued.error = error
            self._unknown.note(is_error=error.is_final, path=str(self._path), error=str(error))
        except BaseException as error:  # Such as a MemoryError: everything was rolled back.
            for queued in batch:
                queued.error = StoreUnavailableError(f"{self._path}: {error!r}")
            raise
        else:
            self._unknown.end(path=str(self._path))


def _not_open() -> RuntimeError:
    return RuntimeError("the store is not open: use `async with store` or `await open()`")
