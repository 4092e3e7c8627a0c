"""Convert between entities and records. All functions are pure; ``_store.py`` makes the requests.

Every write has a random id, the property ``write``. After an attempt without an answer, an entity
with that id shows that the write succeeded.
"""

import struct
from dataclasses import replace
from typing import Any, Final

from checkpointstores._fields import MEMBER
from checkpointstores.tables._table import Entity, Value
from eventproc.models import (
    NOT_BEGUN,
    Checkpoint,
    CheckpointUpdate,
    Isolation,
    Member,
    OwnershipClaim,
    PartitionOwnership,
    SequenceRange,
)

WRITE: Final = "write"

OWNERSHIP_COLUMNS: Final = ("partition_id", "owner_id", "epoch", WRITE)
POSITION_COLUMNS: Final = ("partition_id", "position", "sequence_number", "writer")
MEMBER_COLUMNS: Final = tuple(field.name for field in MEMBER)
RECORD_NAME: Final = "record"

_NONE: Final = -1
"""Stands for ``None`` in a number: an update that leaves a property out keeps its old value."""

_RANGE: Final = struct.Struct(">qq")


def ownership_values(claim: OwnershipClaim, write: str) -> dict[str, Value]:
    """Return the properties of an ownership entity; an empty owner for a released partition."""
    return {
        "partition_id": claim.partition_id,
        "owner_id": claim.owner_id or "",
        "epoch": claim.epoch,
        WRITE: write,
    }


def as_ownership(entity: Entity) -> PartitionOwnership:
    """Return the ownership record in an entity."""
    values, epoch = entity.values, str(entity.values.get("epoch", ""))
    return PartitionOwnership(
        partition_id=str(values["partition_id"]),
        owner_id=str(values.get("owner_id", "")) or None,
        epoch=int(epoch) if epoch.isdecimal() else 0,
        etag=entity.etag,
        last_modified=entity.last_modified,
    )


def member_values(member: Member, write: str) -> dict[str, Value]:
    """Return the properties of a member entity."""
    stored = {field.name: field.written(member) for field in MEMBER}
    return {name: _NONE if value is None else value for name, value in stored.items()} | {
        WRITE: write
    }


def as_member(entity: Entity) -> Member:
    """Return the member record in an entity."""
    values = {name: value for name, value in entity.values.items() if value != _NONE}
    fields: dict[str, Any] = {
        field.name: field.read(values.get(field.name, field.default)) for field in MEMBER
    }
    return Member(**fields, etag=entity.etag, last_modified=entity.last_modified)


def checkpoint_values(update: CheckpointUpdate, write: str) -> dict[str, Value]:
    """Return the properties of a checkpoint without those of its state."""
    return {
        "partition_id": update.partition_id,
        "position": update.offset,  # ``offset`` is a word of the query language.
        "sequence_number": update.sequence_number,
        "writer": update.writer,
        "completed": b"".join(_RANGE.pack(done.first, done.last) for done in update.completed),
        "isolation": str(update.isolation),
        WRITE: write,
    }


def as_checkpoint(entity: Entity, state: bytes | None) -> Checkpoint:
    """Return the checkpoint in an entity, with a state that ``_contents.py`` has read."""
    values: dict[str, Any] = dict(entity.values)
    return Checkpoint(
        partition_id=values["partition_id"],
        offset=values["position"],
        sequence_number=values["sequence_number"],
        writer=values.get("writer"),
        state=state,
        state_sequence_number=values["state_number"] if state else None,
        completed=tuple(SequenceRange(*pair) for pair in _RANGE.iter_unpack(values["completed"])),
        isolation=Isolation.parse(values["isolation"]),
        etag=entity.etag,
        last_modified=entity.last_modified,
    )


def as_partial(entity: Entity) -> Checkpoint:
    """Return the position in an entity of a listing."""
    values = dict(entity.values) | {"completed": b"", "isolation": str(NOT_BEGUN)}
    return replace(as_checkpoint(replace(entity, values=values), None), is_partial=True)
