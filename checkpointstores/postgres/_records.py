"""The records of the PostgreSQL store: one function for each read and write.

Rule 1: each write is one statement, which changes the row only if it has the ETag that was read.
Rule 2: the writer chooses the new ETag, at random. So when a write is repeated because its answer
was lost, a row that has the new ETag already shows that the first attempt succeeded.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from checkpointstores._fields import MEMBER, POSITION, PROGRESS, VERSION
from checkpointstores._rows import (
    MEMBER_ROW,
    OWNERSHIP_ROW,
    RECORD_ROW,
    groups_of,
    key_of,
    list_groups_statement,
)
from checkpointstores.postgres import _statements as sql
from checkpointstores.postgres._schema import CHECKPOINT_ROW, DIALECT, in_schema, utc
from eventproc._core.delivery.checkpoints import checkpoint_after
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
    PartitionOwnership,
    RecordResult,
    WriteOutcome,
)

Values = dict[str, Any]

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Records:
    """The records in one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = schema

    async def _rows(self, db: AsyncConnection[Any], statement: str, values: Values) -> list[Any]:
        cursor = await db.execute(in_schema(statement, self._schema).encode(), values, binary=True)
        return await cursor.fetchall()

    async def _listed(
        self, db: AsyncConnection[Any], statement: str, group: ConsumerGroup
    ) -> tuple[list[Any], datetime]:
        """Return the rows, and the server's time before it read them.

        After a slow listing a later time would make the records appear older than they are.
        """
        rows = await self._rows(db, sql.WITH_TIME.format(listing=statement), key_of(group))
        return [row[1:] for row in rows if row[1] is not None], utc(rows[0][0])

    async def list_groups(
        self, db: AsyncConnection[Any], hub_of: ConsumerGroup | None
    ) -> list[ConsumerGroup]:
        """Return every group that has ownership records or checkpoints."""
        return groups_of(await self._rows(db, list_groups_statement("eventproc."), {}), hub_of)

    async def list_ownership(
        self, db: AsyncConnection[Any], group: ConsumerGroup
    ) -> tuple[tuple[PartitionOwnership, ...], datetime]:
        """Return every ownership record of the group, and the server's time."""
        rows, as_of = await self._listed(db, sql.LIST_OWNERSHIP, group)
        return tuple(_ownership(row) for row in rows), as_of

    async def claim(
        self,
        db: AsyncConnection[Any],
        group: ConsumerGroup,
        claims: Sequence[OwnershipClaim],
        etags: Sequence[str],
    ) -> Sequence[ClaimResult]:
        """Write each claim whose record still has the ETag that its processor read."""
        values = key_of(group) | {
            "partition_ids": [claim.partition_id for claim in claims],
            "owner_ids": [claim.owner_id for claim in claims],
            "epochs": [claim.epoch for claim in claims],
            "expected": [claim.expected_etag for claim in claims],
            "etags": list(etags),
        }
        rows = []
        if any(claim.expected_etag is None for claim in claims):
            rows += await self._rows(db, sql.CLAIM_FIRST, values)
        if any(claim.expected_etag is not None for claim in claims):
            rows += await self._rows(db, sql.CLAIM_AGAIN, values)
        if len(rows) < len(claims):
            rows += await self._rows(db, sql.READ_OWNERSHIP, values)
        stored = {row[0]: _ownership(row) for row in reversed(rows)}  # Prefer what was written.
        return [
            _claimed(claim, etag, stored.get(claim.partition_id))
            for claim, etag in zip(claims, etags, strict=True)
        ]

    async def list_members(
        self, db: AsyncConnection[Any], group: ConsumerGroup
    ) -> MembershipSnapshot:
        """Return every member record of the group, and the ETags of group records."""
        rows = await self._rows(db, sql.LIST_MEMBERS_AND_RECORDS, key_of(group))
        as_of, names, etags = rows[0][:3]
        return MembershipSnapshot(
            members=tuple(_member(row[3:]) for row in rows if row[3] is not None),
            as_of=utc(as_of),
            record_etags=dict(zip(names or (), etags or (), strict=True)),
        )

    async def announce(
        self, db: AsyncConnection[Any], group: ConsumerGroup, member: Member, etag: str
    ) -> MemberResult:
        """Write a member record, if the stored one still has the ETag that its processor knows."""
        values = key_of(group) | DIALECT.values(MEMBER, member)
        values |= {"etag": etag, "expected": member.etag}
        write = sql.INSERT_MEMBER if member.etag is None else sql.UPDATE_MEMBER
        rows = await self._rows(db, write, values)
        if rows:
            written = replace(member, etag=etag, last_modified=utc(rows[0][0]))
            return MemberResult(outcome=WriteOutcome.WON, member=written)
        found = [_member(row) for row in await self._rows(db, sql.READ_MEMBER, values)]
        if found and found[0].etag == etag:
            return MemberResult(outcome=WriteOutcome.WON, member=found[0])
        return MemberResult(outcome=WriteOutcome.LOST)

    async def withdraw(
        self, db: AsyncConnection[Any], group: ConsumerGroup, member: Member
    ) -> WriteOutcome:
        """Delete a member record, if it still has the ETag that its processor knows."""
        values = key_of(group) | {"owner_id": member.owner_id, "expected": member.etag}
        if await self._rows(db, sql.DELETE_MEMBER, values):
            return WriteOutcome.WON
        is_there = await self._rows(db, sql.READ_MEMBER, values)
        return WriteOutcome.LOST if is_there else WriteOutcome.WON

    async def list_checkpoints(
        self, db: AsyncConnection[Any], group: ConsumerGroup
    ) -> tuple[Checkpoint, ...]:
        """Return every checkpoint of the group, partially: only positions."""
        rows = await self._rows(db, sql.LIST_CHECKPOINTS, key_of(group))
        return tuple(
            replace(DIALECT.record(Checkpoint, POSITION + VERSION, row), is_partial=True)
            for row in rows
        )

    async def read_checkpoint(
        self, db: AsyncConnection[Any], group: ConsumerGroup, partition_id: str
    ) -> Checkpoint | None:
        """Return the whole checkpoint of a partition, or ``None``."""
        values = key_of(group) | {"partition_id": partition_id}
        rows = await self._rows(db, sql.READ_CHECKPOINT, values)
        return DIALECT.record(Checkpoint, CHECKPOINT_ROW, rows[0]) if rows else None

    async def update_checkpoint(
        self, db: AsyncConnection[Any], group: ConsumerGroup, update: CheckpointUpdate, etag: str
    ) -> CheckpointResult:
        """Write a whole checkpoint, if the stored one is still the one that was read."""
        values = _checkpoint_values(group, update, etag, fails=False)
        rows = await self._rows(db, sql.WRITE_CHECKPOINT, values)
        if rows:
            return CheckpointResult(
                outcome=WriteOutcome.WON, checkpoint=written_checkpoint(update, etag, *rows[0])
            )
        found = await self.read_checkpoint(db, group, update.partition_id)
        if found is not None and found.etag == etag:
            return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=found)
        return CheckpointResult(outcome=WriteOutcome.LOST)

    def checkpoint_in_transaction(
        self, group: ConsumerGroup, update: CheckpointUpdate, etag: str
    ) -> tuple[bytes, Values]:
        """Return a statement that writes the checkpoint, or fails with ``CHECKPOINT_LOST``."""
        statement = in_schema(sql.WRITE_CHECKPOINT, self._schema).encode()
        return statement, _checkpoint_values(group, update, etag, fails=True)

    async def read_record(
        self, db: AsyncConnection[Any], group: ConsumerGroup, name: str
    ) -> GroupRecord | None:
        """Return a record of the group, or ``None``."""
        rows = await self._rows(db, sql.READ_RECORD, key_of(group) | {"name": name})
        return DIALECT.record(GroupRecord, RECORD_ROW, rows[0]) if rows else None

    async def write_record(
        self, db: AsyncConnection[Any], group: ConsumerGroup, record: GroupRecord, etag: str
    ) -> RecordResult:
        """Write a record of the group, if the stored one still has the ETag that was read."""
        written = replace(record, etag=etag)
        values = key_of(group) | DIALECT.values(RECORD_ROW, written) | {"expected": record.etag}
        write = sql.INSERT_RECORD if record.etag is None else sql.UPDATE_RECORD
        if not await self._rows(db, write, values):
            found = await self.read_record(db, group, record.name)
            if found is None or found.etag != etag:
                return RecordResult(outcome=WriteOutcome.LOST)
        return RecordResult(outcome=WriteOutcome.WON, record=written)


def written_checkpoint(
    update: CheckpointUpdate,
    etag: str,
    written_at_us: int,
    kept: bytes | None,
    kept_number: int | None,
) -> Checkpoint:
    """Return the checkpoint that an update wrote.

    ``kept`` is the state in the row, for a caller that replaces a checkpoint from a listing, which
    has no state.
    """
    replaces = update.replaces
    if replaces is not None and replaces.is_partial:
        replaces = replace(replaces, state=kept, state_sequence_number=kept_number)
    stored = checkpoint_after(update, replaces)
    last_modified = _EPOCH + timedelta(microseconds=written_at_us)
    return replace(stored, etag=etag, last_modified=last_modified)


def _checkpoint_values(
    group: ConsumerGroup, update: CheckpointUpdate, etag: str, *, fails: bool
) -> Values:
    replaces, keeps_state = update.replaces, update.state is None
    values = key_of(group) | DIALECT.values(POSITION + PROGRESS, update)
    return values | {
        "state": update.state or None,
        "state_sequence_number": update.sequence_number if update.state else None,
        "etag": etag,
        "expected": None if replaces is None else replaces.etag,
        "keeps_state": keeps_state,
        "returns_state": keeps_state and replaces is not None and replaces.is_partial,
        "fails": fails,
    }


def _claimed(claim: OwnershipClaim, etag: str, stored: PartitionOwnership | None) -> ClaimResult:
    is_won = stored is not None and stored.etag == etag
    outcome = WriteOutcome.WON if is_won else WriteOutcome.LOST
    return ClaimResult(claim=claim, outcome=outcome, ownership=stored)


def _ownership(row: Sequence[Any]) -> PartitionOwnership:
    return DIALECT.record(PartitionOwnership, OWNERSHIP_ROW, row)


def _member(row: Sequence[Any]) -> Member:
    return DIALECT.record(Member, MEMBER_ROW, row)
