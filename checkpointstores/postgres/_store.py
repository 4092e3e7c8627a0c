"""The checkpoint store in a PostgreSQL database, for any number of processes anywhere.

Rule 1: every write is one statement on one connection, so no other process can write in between.
Rule 2: a call whose answer is lost is repeated on a new connection. A row that has the new ETag
then shows that the first attempt succeeded.
Rule 3: times are those of the server's clock.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from psycopg import AsyncConnection

from checkpointstores._fields import new_name, require_partition_id
from checkpointstores._retries import retried
from checkpointstores.postgres import _schema as tables
from checkpointstores.postgres._changes import Changes
from checkpointstores.postgres._records import Records
from checkpointstores.postgres._session import Session, Work, checked_dsn, place_of
from checkpointstores.postgres._transactions import PostgresTransactions
from eventproc._base.logs import ConditionLogger, get_logger
from eventproc._base.settings import Count, PositiveSpan, checked
from eventproc.errors import ConfigurationError, StoreError, StoreRejectedError
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

_log = get_logger("eventproc.stores.postgres")


class PostgresCheckpointStore(CheckpointStore):
    """Keeps records in the tables of one schema.

    A won write has the durability of the server's ``synchronous_commit``. The store gets
    notifications of changes (``LISTEN``), so it must not connect through a pooler that gives a
    connection to another client between statements or transactions.
    """

    @checked
    def __init__(
        self,
        dsn: str,
        *,
        schema: str = tables.SCHEMA,
        create_schema: bool = False,
        timeout: PositiveSpan = timedelta(seconds=5),
        transactions_max: Count = 10,
    ) -> None:
        """Build the store; ``open`` connects.

        Args:
            dsn: The connection string, with the password; or where it is: ``file:PATH``, in one
                line, or ``env:NAME``. Several hosts with
                ``target_session_attrs=read-write`` are tried in turn, which follows a fail-over.
            schema: The schema that has the tables.
            create_schema: Create schema and tables if they do not exist. By default
                ``eventproc store init`` does that.
            timeout: How long one attempt of a call may take. After several of them a read raises
                ``StoreUnavailableError``, and the outcome of a write is unknown.
            transactions_max: How many transactions of handlers may be open at once in a
                processor; each needs a connection. Others wait.
        """
        tables.check_name(schema)
        self._dsn = checked_dsn(dsn)
        self._place = place_of(self._dsn)
        self._schema = schema
        self._create_schema = create_schema
        self._timeout = timeout
        self._transactions_max = transactions_max
        self._records = Records(schema)
        self._session: Session | None = None
        self._changes = Changes(
            self._dsn, schema=schema, place=self._place, is_own=self._is_own, log=_log
        )
        self._unknown = ConditionLogger(_log, "store_write_unknown", "store_write_known_again")

    def __repr__(self) -> str:
        return f"PostgresCheckpointStore({self._place}, schema {self._schema!r})"

    @property
    def tells_changes(self) -> bool:
        return True

    async def open(self) -> None:
        if self._session is not None:
            return
        self._session = Session(self._dsn, timeout=self._timeout, place=self._place)
        try:
            if self._create_schema:
                await self._run(self._create)
            await self._run(self._check)
        except StoreRejectedError as error:
            await self.close()
            raise ConfigurationError(str(error)) from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _create(self, db: AsyncConnection[Any]) -> None:
        """Create the tables if they do not exist, while no other process does."""
        async with db.transaction():
            await db.execute("SELECT pg_advisory_xact_lock(hashtext('eventproc.schema'))")
            if await self._version(db) is None:
                await db.execute(self._in_schema(tables.CREATE))
                await db.execute(self._in_schema(tables.WRITE_VERSION), [tables.VERSION])

    async def _check(self, db: AsyncConnection[Any]) -> None:
        """Check that the tables are those of this version, and that the role may use them."""
        version = await self._version(db)
        where = f"{self._place}: schema {self._schema!r}"
        if version is None:
            raise ConfigurationError(f"{where} has no tables: run `eventproc store init`")
        if version != tables.VERSION:
            raise ConfigurationError(
                f"{where} was written by another version of eventproc (its tables have version "
                f"{version}, this one knows {tables.VERSION}): use that version, or another schema"
            )
        cursor = await db.execute(self._in_schema(tables.MISSING_RIGHTS))
        missing = [row[0] for row in await cursor.fetchall()]
        if missing:
            raise ConfigurationError(
                f"{where}: the role lacks rights on tables ({', '.join(missing)}): "
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {self._schema}"
            )

    async def _version(self, db: AsyncConnection[Any]) -> int | None:
        """Return the version of the tables; ``None`` if there are none."""
        cursor = await db.execute(tables.EXISTS, [f"{self._schema}.version"])
        [exists] = await cursor.fetchone() or [False]
        if not exists:
            return None
        cursor = await db.execute(self._in_schema(tables.READ_VERSION))
        [version] = await cursor.fetchone() or [0]
        return int(version)

    def _in_schema(self, statement: str) -> bytes:
        return tables.in_schema(statement, self._schema).encode()

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        ownerships, as_of = await self._run(lambda db: self._records.list_ownership(db, group))
        return OwnershipSnapshot(ownerships=ownerships, as_of=as_of)

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        for claim in claims:
            require_partition_id(claim.partition_id)
        if not claims:
            return []
        etags = [new_name() for _ in claims]
        return await self._write(
            lambda db: self._records.claim(db, group, claims, etags),
            lambda error: [
                ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN, error=error)
                for claim in claims
            ],
        )

    async def list_members(self, group: ConsumerGroup) -> MembershipSnapshot:
        return await self._run(lambda db: self._records.list_members(db, group))

    async def announce_member(self, group: ConsumerGroup, member: Member) -> MemberResult:
        etag = new_name()
        return await self._write(
            lambda db: self._records.announce(db, group, member, etag),
            lambda error: MemberResult(outcome=WriteOutcome.UNKNOWN, error=error),
        )

    async def withdraw_member(self, group: ConsumerGroup, member: Member) -> WriteOutcome:
        return await self._write(
            lambda db: self._records.withdraw(db, group, member), lambda _: WriteOutcome.UNKNOWN
        )

    async def list_groups(self, hub_of: ConsumerGroup | None = None) -> Sequence[ConsumerGroup]:
        return await self._run(lambda db: self._records.list_groups(db, hub_of))

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        return await self._run(lambda db: self._records.list_checkpoints(db, group))

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        require_partition_id(partition_id)
        return await self._run(lambda db: self._records.read_checkpoint(db, group, partition_id))

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        require_partition_id(update.partition_id)
        etag = new_name()
        return await self._write(
            lambda db: self._records.update_checkpoint(db, group, update, etag),
            lambda error: CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error),
        )

    async def read_record(self, group: ConsumerGroup, name: str) -> GroupRecord | None:
        return await self._run(lambda db: self._records.read_record(db, group, name))

    async def write_record(self, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
        etag = new_name()
        return await self._write(
            lambda db: self._records.write_record(db, group, record, etag),
            lambda error: RecordResult(outcome=WriteOutcome.UNKNOWN, error=error),
        )

    def transactions(self) -> Transactions:
        return PostgresTransactions(
            self._dsn,
            self._records,
            limit=self._timeout,
            connections_max=self._transactions_max,
            place=self._place,
        )

    async def watch(
        self, group: ConsumerGroup, owner_id: str, changed: Callable[[], object]
    ) -> None:
        await self._changes.watch(group, owner_id, changed)

    def _is_own(self, pid: int) -> bool:
        return self._session is not None and self._session.pid == pid

    # --- the connection --------------------------------------------------------------------------

    @property
    def _opened(self) -> Session:
        if self._session is None:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        return self._session

    async def _run(self, work: Work[T]) -> T:
        """Run statements; repeat them while there is no answer."""
        session = self._opened
        return await retried(lambda: session.run(work))

    async def _write(self, work: Work[T], unknown: Callable[[StoreError], T]) -> T:
        """Run a write; another attempt recognises by its ETag that the first one succeeded."""
        try:
            result = await self._run(work)
        except StoreError as error:
            self._unknown.note(is_error=error.is_final, place=self._place, error=str(error))
            return unknown(error)
        self._unknown.end(place=self._place)
        return result
