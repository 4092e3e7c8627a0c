"""The records of the SQLite store: one function for each read and write.

Each runs inside a transaction that the caller begins and ends, so reading the ETag, comparing it
and writing are one atomic step for other processes.
"""

import json
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from checkpointstores.member_enums import offset_format_of, status_of
from eventproc.bounded_json import read_json
from eventproc.errors import StoreCorruptError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    GroupRecord,
    Isolation,
    Member,
    MemberResult,
    OwnershipClaim,
    PartitionOwnership,
    RecordResult,
    SequenceRange,
    WriteOutcome,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)

_LIST_OWNERSHIP: Final = """
SELECT partition_id, owner_id, epoch, etag, last_modified_us
FROM ownership WHERE namespace = ? AND eventhub = ? AND consumer_group = ?
"""
_READ_OWNERSHIP: Final = _LIST_OWNERSHIP + "AND partition_id = ?"
_WRITE_OWNERSHIP: Final = "INSERT OR REPLACE INTO ownership VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_MEMBER_COLUMNS: Final = (
    "owner_id",
    "incarnation",
    "status",
    "hands_over",
    "weight",
    "capacity",
    "ordinal",
    "placement",
    "load",
    "deployment_id",
    "offset_format",
    "version",
    "etag",
    "last_modified_us",
)
_LIST_MEMBERS: Final = f"""
SELECT {", ".join(_MEMBER_COLUMNS)}
FROM member WHERE namespace = ? AND eventhub = ? AND consumer_group = ?
"""
_READ_MEMBER_ETAG: Final = """
SELECT etag FROM member
WHERE namespace = ? AND eventhub = ? AND consumer_group = ? AND owner_id = ?
"""
_WRITE_MEMBER: Final = (
    f"INSERT OR REPLACE INTO member VALUES (?, ?, ?{', ?' * len(_MEMBER_COLUMNS)})"
)
_DELETE_MEMBER: Final = """
DELETE FROM member WHERE namespace = ? AND eventhub = ? AND consumer_group = ? AND owner_id = ?
"""

_LIST_CHECKPOINTS: Final = """
SELECT partition_id, "offset", sequence_number, writer, etag, last_modified_us
FROM checkpoint WHERE namespace = ? AND eventhub = ? AND consumer_group = ?
"""
# One statement reads one snapshot, so that position and state belong together.
_READ_CHECKPOINT: Final = """
SELECT partition_id, c."offset", c.sequence_number, c.writer, c.etag, c.last_modified_us,
    s.state, s.sequence_number, c.completed, c.isolation
FROM checkpoint c
    LEFT JOIN checkpoint_state s USING (namespace, eventhub, consumer_group, partition_id)
WHERE namespace = ? AND eventhub = ? AND consumer_group = ? AND partition_id = ?
"""
_READ_CHECKPOINT_ETAG: Final = """
SELECT etag FROM checkpoint
WHERE namespace = ? AND eventhub = ? AND consumer_group = ? AND partition_id = ?
"""
_WRITE_CHECKPOINT: Final = (
    "INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_WRITE_STATE: Final = "INSERT OR REPLACE INTO checkpoint_state VALUES (?, ?, ?, ?, ?, ?)"
_DELETE_STATE: Final = """
DELETE FROM checkpoint_state
WHERE namespace = ? AND eventhub = ? AND consumer_group = ? AND partition_id = ?
"""

_READ_RECORD: Final = """
SELECT content, etag FROM group_record
WHERE namespace = ? AND eventhub = ? AND consumer_group = ? AND name = ?
"""
_LIST_RECORDS: Final = """
SELECT name, etag FROM group_record WHERE namespace = ? AND eventhub = ? AND consumer_group = ?
"""
_WRITE_RECORD: Final = "INSERT OR REPLACE INTO group_record VALUES (?, ?, ?, ?, ?, ?)"


def instant(microseconds: int) -> datetime:
    """Return the time that is this many microseconds after the beginning of 1970.

    A number that no time has is clamped, so that a damaged record does not make a listing fail.
    """
    return _EPOCH + timedelta(microseconds=min(max(0, microseconds), _LAST_US))


def _new_etag() -> str:
    """Return a random ETag, so that recreated records and restored backups never repeat one."""
    return secrets.token_hex(8)


def list_ownership(db: sqlite3.Connection, group: ConsumerGroup) -> tuple[PartitionOwnership, ...]:
    """Return every ownership record of the group."""
    return tuple(_as_ownership(*row) for row in db.execute(_LIST_OWNERSHIP, group.key))


def claim(
    db: sqlite3.Connection, group: ConsumerGroup, claim: OwnershipClaim, now_us: int
) -> ClaimResult:
    """Write one claim, if the record still has the ETag that the processor read."""
    key = (*group.key, claim.partition_id)
    row = db.execute(_READ_OWNERSHIP, key).fetchone()
    current = _as_ownership(*row) if row else None
    if claim.expected_etag != (current.etag if current else None):
        return ClaimResult(claim=claim, outcome=WriteOutcome.LOST, ownership=current)
    values = (claim.partition_id, claim.owner_id, claim.epoch, _new_etag(), now_us)
    db.execute(_WRITE_OWNERSHIP, (*group.key, *values))
    written = _as_ownership(*values)
    return ClaimResult(claim=claim, outcome=WriteOutcome.WON, ownership=written)


def _as_ownership(
    partition_id: str, owner_id: str | None, epoch: int, etag: str, last_modified_us: int
) -> PartitionOwnership:
    return PartitionOwnership(
        partition_id=partition_id,
        owner_id=owner_id,
        epoch=epoch,
        etag=etag,
        last_modified=instant(last_modified_us),
    )


def list_members(db: sqlite3.Connection, group: ConsumerGroup) -> tuple[Member, ...]:
    """Return every member record of the group."""
    return tuple(_as_member(row) for row in db.execute(_LIST_MEMBERS, group.key))


def _as_member(row: Sequence[Any]) -> Member:
    *values, last_modified_us = row
    stored = dict(zip(_MEMBER_COLUMNS[:-1], values, strict=True))
    read = {
        "status": status_of(stored["status"]),
        "hands_over": bool(stored["hands_over"]),
        "offset_format": offset_format_of(stored["offset_format"]),
        "last_modified": instant(last_modified_us),
    }
    return Member(**(stored | read))


def announce(
    db: sqlite3.Connection, group: ConsumerGroup, member: Member, now_us: int
) -> MemberResult:
    """Write a member record, if the stored one still has the ETag that its processor knows."""
    if member.etag != _member_etag(db, group, member.owner_id):
        return MemberResult(outcome=WriteOutcome.LOST)
    etag = _new_etag()
    values = (
        member.owner_id,
        member.incarnation,
        member.status.value,
        member.hands_over,
        member.weight,
        member.capacity,
        member.ordinal,
        member.placement,
        member.load,
        member.deployment_id,
        member.offset_format.value,
        member.version,
        etag,
        now_us,
    )
    db.execute(_WRITE_MEMBER, (*group.key, *values))
    written = replace(member, etag=etag, last_modified=instant(now_us))
    return MemberResult(outcome=WriteOutcome.WON, member=written)


def withdraw(db: sqlite3.Connection, group: ConsumerGroup, member: Member) -> WriteOutcome:
    """Delete a member record, if it still has the ETag that its processor knows."""
    if _member_etag(db, group, member.owner_id) not in {None, member.etag}:
        return WriteOutcome.LOST
    db.execute(_DELETE_MEMBER, (*group.key, member.owner_id))
    return WriteOutcome.WON


def _member_etag(db: sqlite3.Connection, group: ConsumerGroup, owner_id: str) -> str | None:
    row = db.execute(_READ_MEMBER_ETAG, (*group.key, owner_id)).fetchone()
    return row[0] if row else None


def list_checkpoints(db: sqlite3.Connection, group: ConsumerGroup) -> tuple[Checkpoint, ...]:
    """Return every checkpoint of the group, partially: only positions."""
    return tuple(
        replace(_as_checkpoint(*row), is_partial=True)
        for row in db.execute(_LIST_CHECKPOINTS, group.key)
    )


def read_checkpoint(
    db: sqlite3.Connection, group: ConsumerGroup, partition_id: str
) -> Checkpoint | None:
    """Return the whole checkpoint of a partition, or ``None``."""
    row = db.execute(_READ_CHECKPOINT, (*group.key, partition_id)).fetchone()
    if row is None:
        return None
    *position, state, state_number, completed, isolation = row
    try:
        done = tuple(SequenceRange(*pair) for pair in read_json(completed))
    except (ValueError, TypeError) as error:
        raise StoreCorruptError(
            f"the completed ranges of partition {partition_id!r} are damaged: restore a backup, or "
            "move the position with `eventproc checkpoints reset`"
        ) from error
    return replace(
        _as_checkpoint(*position),
        state=state,
        state_sequence_number=state_number,
        completed=done,
        isolation=Isolation.parse(isolation),
    )


def _as_checkpoint(  # noqa: PLR0917 - the columns, in their order
    partition_id: str,
    offset: str,
    sequence_number: int,
    writer: str,
    etag: str,
    last_modified_us: int,
) -> Checkpoint:
    return Checkpoint(
        partition_id=partition_id,
        offset=offset,
        sequence_number=sequence_number,
        writer=writer,
        etag=etag,
        last_modified=instant(last_modified_us),
    )


def update_checkpoint(
    db: sqlite3.Connection, group: ConsumerGroup, update: CheckpointUpdate, now_us: int
) -> CheckpointResult:
    """Write a whole checkpoint, if the stored one is still the one that was read."""
    key = (*group.key, update.partition_id)
    row = db.execute(_READ_CHECKPOINT_ETAG, key).fetchone()
    if (row[0] if row else None) != (update.replaces.etag if update.replaces else None):
        return CheckpointResult(outcome=WriteOutcome.LOST)
    values = (
        update.offset,
        update.sequence_number,
        update.writer,
        json.dumps([[done.first, done.last] for done in update.completed]),
        str(update.isolation),
        _new_etag(),
        now_us,
    )
    db.execute(_WRITE_CHECKPOINT, (*key, *values))
    if update.state == b"":
        db.execute(_DELETE_STATE, key)
    elif update.state is not None:
        db.execute(_WRITE_STATE, (*key, update.sequence_number, update.state))
    written = read_checkpoint(db, group, update.partition_id)
    return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=written)


def list_records(db: sqlite3.Connection, group: ConsumerGroup) -> dict[str, str]:
    """Return the ETag of each record of the group, by its name."""
    return dict(db.execute(_LIST_RECORDS, group.key).fetchall())


def read_record(db: sqlite3.Connection, group: ConsumerGroup, name: str) -> GroupRecord | None:
    """Return a record of the group, or ``None``."""
    row = db.execute(_READ_RECORD, (*group.key, name)).fetchone()
    return GroupRecord(name=name, content=row[0], etag=row[1]) if row else None


def write_record(db: sqlite3.Connection, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
    """Write a record of the group, if the stored one still has the ETag that was read."""
    current = read_record(db, group, record.name)
    if record.etag != (current.etag if current else None):
        return RecordResult(outcome=WriteOutcome.LOST)
    written = replace(record, etag=_new_etag())
    db.execute(_WRITE_RECORD, (*group.key, record.name, record.content, written.etag))
    return RecordResult(outcome=WriteOutcome.WON, record=written)
