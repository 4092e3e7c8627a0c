r"""The requests that the table store makes to a table, and the keys of entities.

The store uses the interface ``Table``, so it does not depend on Azure's client. A group's records
of one kind share a partition key.

Azure forbids ``/ \ # ?`` and control characters in keys, and at most 512 characters in each. Names
are encoded, and long ones shortened; a record's own name is one of its properties, and is never
decoded from a key.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Protocol
from urllib.parse import quote

from checkpointstores._requests import Vendor, Written
from eventproc.models import ConsumerGroup

TRANSACTION_MAX: Final = 100
"""Most entities in one entity-group transaction; all must have the same partition key."""

Value = str | int | float | bool | bytes
Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The key of an entity in its table."""

    partition: str
    row: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One version of an entity."""

    key: Key
    etag: str
    last_modified: datetime
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A conditional write: the stored entity must have this ETag; ``None``: must not exist.

    An update keeps the properties that *values* leaves out.
    """

    key: Key
    values: Values
    etag: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Entities with one partition key."""

    entities: tuple[Entity, ...]
    as_of: datetime
    """The service's time in the answer with the first page. Relative to it, entities on later pages
    can only appear younger than they are, never older."""


class Table(Vendor, Protocol):
    """A table. Each method is one request, or one for each page of a listing.

    All methods raise ``StoreUnavailableError`` if there is no answer or a temporary failure, and
    ``StoreRejectedError`` if the service refuses permanently. Writes also raise
    ``ConditionFailedError``.
    """

    async def list(
        self, partition: str, columns: Sequence[str], *, row_prefix: str = ""
    ) -> Listing:
        """Return the entities of a partition key, with the named properties."""

    async def read(self, key: Key) -> Entity | None:
        """Return an entity with all properties, or ``None``."""

    async def write(self, write: Write) -> Written | None:
        """Make one conditional write. ``None``: the version that it created has to be read."""

    async def write_together(self, writes: Sequence[Write]) -> Sequence[Written | None]:
        """Make up to ``TRANSACTION_MAX`` conditional writes, all or none of them."""

    async def put(self, key: Key, values: Values) -> None:
        """Write an entity, whether it exists or not."""

    async def delete(self, key: Key, *, etag: str | None) -> None:
        """Delete an entity of the version *etag*; ``None``: of any version.

        An entity that does not exist counts as deleted.
        """


_CHARACTERS_MAX: Final = 400


class RecordKind(Enum):
    """The kind of an entity. Kinds have different partition keys, which spreads their load."""

    OWNERSHIP = "ownership"
    CHECKPOINT = "checkpoint"
    MEMBER = "member"
    """Members and group records, so that one listing shows both."""

    PART = "part"
    """A part of a state or of a group record that is too large for one property."""


def partition_of(group: ConsumerGroup, kind: RecordKind) -> str:
    """Return the partition key of a group's records of one kind."""
    names = " ".join(map(_encoded, group.key))  # A name has no blank when it is encoded.
    return f"{_short(names)} {kind.value}"


def record_key(group: ConsumerGroup, kind: RecordKind, name: str) -> Key:
    """Return the key of a group's record of this kind and name."""
    return Key(partition=partition_of(group, kind), row=_short(_encoded(name)))


def group_record_key(group: ConsumerGroup, name: str) -> Key:
    """Return the key of a group record; no member's key is equal to it."""
    key = record_key(group, RecordKind.MEMBER, name)
    return Key(partition=key.partition, row=f"record {key.row}")


def part_key(group: ConsumerGroup, version: str, number: int) -> Key:
    """Return the key of a part of a large content; *version* is unique to one write."""
    return Key(partition=partition_of(group, RecordKind.PART), row=f"{version} {number}")


def _encoded(name: str) -> str:
    """Encode a name, uniquely. ``!`` replaces ``%``, which tables and proxies mishandle in keys."""
    return quote(name, safe="$").replace("%", "!")


def _short(encoded: str) -> str:
    if len(encoded) <= _CHARACTERS_MAX:
        return encoded
    digest = hashlib.sha256(encoded.encode()).hexdigest()
    return f"{encoded[: _CHARACTERS_MAX - len(digest) - 1]}~{digest}"
