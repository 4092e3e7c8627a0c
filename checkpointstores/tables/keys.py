r"""The keys of entities: a group's records of one kind share a partition key.

Azure forbids ``/ \ # ?`` and control characters in keys, and at most 512 characters in each. Names
are encoded, and long ones shortened; a record's own name is one of its properties, and is never
decoded from a key.
"""

import hashlib
from enum import Enum
from typing import Final
from urllib.parse import quote

from checkpointstores.tables.table import Key
from eventproc.models import ConsumerGroup

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
