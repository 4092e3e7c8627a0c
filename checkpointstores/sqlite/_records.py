"""The records of the SQLite store: one function for each read and write.

Each runs inside a transaction that the caller begins and ends, so reading the ETag, comparing it
and writing are one atomic step for other processes.
"""

import sqlite3
from dataclasses import replace
from typing import Any, Final

from checkpointstores._fields import MEMBER, OWNERSHIP, POSITION, PROGRESS, STATE, VERSION, new_name
from checkpointstores._rows import (
    GROUP,
    MEMBER_ROW,
    OWNERSHIP_ROW,
    RECORD_ROW,
    Fields,
    groups_of,
    key_of,
    list_groups_statement,
)
from checkpointstores.sqlite._tables import CHECKPOINT_ROW, DIALECT, STATE_ROW, instant
from eventproc.errors import StoreCorruptError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberResult,
    OwnershipClaim,
    PartitionOwnership,
    RecordResult,
    WriteOutcome,
)


def _list(table: str, fields: Fields) -> str:
    return f"SELECT {DIALECT.columns(fields)} FROM {table} WHERE {DIALECT.where()}"


def _replace(table: str, fields: Fields) -> str:
    return f"INSERT OR REPLACE INTO {table} VALUES ({DIALECT.parameters(fields)})"


_LISTED: Final = POSITION + VERSION

_LIST_GROUPS: Final = list_groups_statement()

_LIST_OWNERSHIP: Final = _list("ownership", OWNERSHIP_ROW)
_READ_OWNERSHIP: Final = f"{_LIST_OWNERSHIP} AND partition_id = :partition_id"
_WRITE_OWNERSHIP: Final = _replace("ownership", OWNERSHIP_ROW)

_LIST_MEMBERS: Final = _list("member", MEMBER_ROW)
_READ_MEMBER_ETAG: Final = f"SELECT etag FROM member WHERE {DIALECT.where('owner_id')}"
_WRITE_MEMBER: Final = _replace("member", MEMBER_ROW)
_DELETE_MEMBER: Final = f"DELETE FROM member WHERE {DIALECT.where('owner_id')}"

_LIST_CHECKPOINTS: Final = _list("checkpoint", _LISTED)
# One statement reads one snapshot, so that position and state belong together.
_READ_CHECKPOINT: Final = f"""
SELECT {DIALECT.columns(_LISTED, "c")}, s.state, s.sequence_number, {DIALECT.columns(PROGRESS, "c")}
FROM checkpoint c LEFT JOIN checkpoint_state s USING ({", ".join(GROUP)}, partition_id)
WHERE {DIALECT.where("partition_id")}
"""
_READ_CHECKPOINT_ETAG: Final = f"SELECT etag FROM checkpoint WHERE {DIALECT.where('partition_id')}"
_WRITE_CHECKPOINT: Final = _replace("checkpoint", CHECKPOINT_ROW)
_WRITE_STATE: Final = _replace("checkpoint_state", STATE_ROW)
_DELETE_STATE: Final = f"DELETE FROM checkpoint_state WHERE {DIALECT.where('partition_id')}"

_READ_RECORD: Final = f"{_list('group_record', RECORD_ROW)} AND name = :name"
_LIST_RECORDS: Final = f"SELECT name, etag FROM group_record WHERE {DIALECT.where()}"
_WRITE_RECORD: Final = _replace("group_record", RECORD_ROW)


def _etag(db: sqlite3.Connection, statement: str, key: dict[str, Any]) -> str | None:
    row = db.execute(statement, key).fetchone()
    return row[0] if row else None


def list_groups(db: sqlite3.Connection, hub_of: ConsumerGroup | None) -> list[ConsumerGroup]:
    """Return every group that has ownership records or checkpoints."""
    return groups_of(db.execute(_LIST_GROUPS), hub_of)


def list_ownership(db: sqlite3.Connection, group: ConsumerGroup) -> tuple[PartitionOwnership, ...]:
    """Return every ownership record of the group."""
    return tuple(
        DIALECT.record(PartitionOwnership, OWNERSHIP_ROW, row)
        for row in db.execute(_LIST_OWNERSHIP, key_of(group))
    )


def claim(
    db: sqlite3.Connection, group: ConsumerGroup, claim: OwnershipClaim, now_us: int
) -> ClaimResult:
    """Write one claim, if the record still has the ETag that the processor read."""
    values = key_of(group) | DIALECT.values(OWNERSHIP, claim)
    row = db.execute(_READ_OWNERSHIP, values).fetchone()
    current = DIALECT.record(PartitionOwnership, OWNERSHIP_ROW, row) if row else None
    if claim.expected_etag != (current.etag if current else None):
        return ClaimResult(claim=claim, outcome=WriteOutcome.LOST, ownership=current)
    values |= {"etag": new_name(), "last_modified": now_us}
    db.execute(_WRITE_OWNERSHIP, values)
    row = [values[field.name] for field in OWNERSHIP_ROW]
    written = DIALECT.record(PartitionOwnership, OWNERSHIP_ROW, row)
    return ClaimResult(claim=claim, outcome=WriteOutcome.WON, ownership=written)


def list_members(db: sqlite3.Connection, group: ConsumerGroup) -> tuple[Member, ...]:
    """Return every member record of the group."""
    return tuple(
        DIALECT.record(Member, MEMBER_ROW, row) for row in db.execute(_LIST_MEMBERS, key_of(group))
    )


def announce(
    db: sqlite3.Connection, group: ConsumerGroup, member: Member, now_us: int
) -> MemberResult:
    """Write a member record, if the stored one still has the ETag that its processor knows."""
    values = key_of(group) | DIALECT.values(MEMBER, member)
    if member.etag != _etag(db, _READ_MEMBER_ETAG, values):
        return MemberResult(outcome=WriteOutcome.LOST)
    values |= {"etag": new_name(), "last_modified": now_us}
    db.execute(_WRITE_MEMBER, values)
    written = replace(member, etag=values["etag"], last_modified=instant(now_us))
    return MemberResult(outcome=WriteOutcome.WON, member=written)


def withdraw(db: sqlite3.Connection, group: ConsumerGroup, member: Member) -> WriteOutcome:
    """Delete a member record, if it still has the ETag that its processor knows."""
    key = key_of(group) | {"owner_id": member.owner_id}
    if _etag(db, _READ_MEMBER_ETAG, key) not in {None, member.etag}:
        return WriteOutcome.LOST
    db.execute(_DELETE_MEMBER, key)
    return WriteOutcome.WON


def list_checkpoints(db: sqlite3.Connection, group: ConsumerGroup) -> tuple[Checkpoint, ...]:
    """Return every checkpoint of the group, partially: only positions."""
    return tuple(
        replace(DIALECT.record(Checkpoint, _LISTED, row), is_partial=True)
        for row in db.execute(_LIST_CHECKPOINTS, key_of(group))
    )


def read_checkpoint(
    db: sqlite3.Connection, group: ConsumerGroup, partition_id: str
) -> Checkpoint | None:
    """Return the whole checkpoint of a partition, or ``None``."""
    key = key_of(group) | {"partition_id": partition_id}
    row = db.execute(_READ_CHECKPOINT, key).fetchone()
    if row is None:
        return None
    try:
        return DIALECT.record(Checkpoint, _LISTED + STATE + PROGRESS, row)
    except (ValueError, TypeError) as error:
        raise StoreCorruptError(
            f"the completed ranges of partition {partition_id!r} are damaged: restore a backup, or "
            "move the position with `eventproc checkpoints reset`"
        ) from error


def update_checkpoint(
    db: sqlite3.Connection, group: ConsumerGroup, update: CheckpointUpdate, now_us: int
) -> CheckpointResult:
    """Write a whole checkpoint, if the stored one is still the one that was read."""
    values = key_of(group) | DIALECT.values(POSITION + PROGRESS, update)
    stored = _etag(db, _READ_CHECKPOINT_ETAG, values)
    if stored != (update.replaces.etag if update.replaces else None):
        return CheckpointResult(outcome=WriteOutcome.LOST)
    values |= {"etag": new_name(), "last_modified": now_us, "state": update.state}
    db.execute(_WRITE_CHECKPOINT, values)
    if update.state == b"":
        db.execute(_DELETE_STATE, values)
    elif update.state is not None:
        db.execute(_WRITE_STATE, values)
    written = read_checkpoint(db, group, update.partition_id)
    return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=written)


def list_records(db: sqlite3.Connection, group: ConsumerGroup) -> dict[str, str]:
    """Return the ETag of each record of the group, by its name."""
    return dict(db.execute(_LIST_RECORDS, key_of(group)).fetchall())


def read_record(db: sqlite3.Connection, group: ConsumerGroup, name: str) -> GroupRecord | None:
    """Return a record of the group, or ``None``."""
    row = db.execute(_READ_RECORD, key_of(group) | {"name": name}).fetchone()
    return DIALECT.record(GroupRecord, RECORD_ROW, row) if row else None


def write_record(db: sqlite3.Connection, group: ConsumerGroup, record: GroupRecord) -> RecordResult:
    """Write a record of the group, if the stored one still has the ETag that was read."""
    current = read_record(db, group, record.name)
    if record.etag != (current.etag if current else None):
        return RecordResult(outcome=WriteOutcome.LOST)
    written = replace(record, etag=new_name())
    db.execute(_WRITE_RECORD, key_of(group) | DIALECT.values(RECORD_ROW, written))
    return RecordResult(outcome=WriteOutcome.WON, record=written)
