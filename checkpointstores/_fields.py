"""The fields of records that stores keep by name, and checks of names in a record's key.

A field says how it is written and how it is read. A store adds how it keeps a text, a number, a
truth value and ``None``. A new field of ``Member`` is one line here: blobs, tables and databases
keep it.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup, Isolation, MemberStatus, OffsetFormat


def unchanged(value: Any) -> Any:  # noqa: ANN401 - of any field
    """Return the value, which is stored as it is."""
    return value


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record, and its stored form."""

    name: str
    type: type
    """What is stored: ``str``, ``int``, ``float``, ``bool``, ``bytes``, ``datetime``, or ``tuple``
    for ranges of sequence numbers."""

    default: Any = ""
    """Its value in a stored record that lacks it. With ``None`` a row may have NULL."""

    write: Callable[[Any], Any] = unchanged
    """Returns what is stored for a value of the field."""

    read: Callable[[Any], Any] = unchanged
    """Returns the field's value for what is stored."""

    def written(self, record: object) -> Any:  # noqa: ANN401 - of any field
        """Return what is stored for a record's field."""
        return self.write(getattr(record, self.name))


VERSION: Final = (Field("etag", str), Field("last_modified", datetime))

OWNERSHIP: Final = (
    Field("partition_id", str),
    Field("owner_id", str, None),
    Field("epoch", int),
)

POSITION: Final = (
    Field("partition_id", str),
    Field("offset", str),
    Field("sequence_number", int),
    Field("writer", str),
)
STATE: Final = (Field("state", bytes, None), Field("state_sequence_number", int, None))
PROGRESS: Final = (
    Field("completed", tuple),
    Field("isolation", str, write=str, read=Isolation.parse),
)
"""With ``POSITION`` and ``STATE``: the fields of a checkpoint, which not every store keeps by
name."""


def _word(name: str, default: Enum) -> Field:
    """Return a field whose values are stored as words.

    A later version of eventproc may have written a word that this one does not know. It is read as
    the default, so that a listing never fails, and the processor that wrote it counts as a live
    member.
    """

    def read(word: str) -> Enum:
        try:
            return type(default)(word)
        except ValueError:
            return default

    return Field(name, str, default, write=attrgetter("value"), read=read)


MEMBER: Final = (
    Field("owner_id", str),
    Field("incarnation", str),
    _word("status", MemberStatus.ACTIVE),
    Field("hands_over", bool, default=True),
    Field("weight", float, 1.0),
    Field("capacity", int, None),
    Field("ordinal", int, None),
    Field("placement", str, "Even"),
    Field("load", str),
    Field("deployment_id", str),
    _word("offset_format", OffsetFormat.AMQP),
    Field("version", str),
)


def require_partition_id(partition_id: str) -> str:
    """Return the id unchanged if it can be part of a key.

    All stores refuse the same ids, so that a group can be moved from one store to another.

    Raises:
        ConfigurationError: it is empty, has a slash, a backslash or surrounding blanks, is not
            printable, or is ``.`` or ``..``.
    """
    if (
        not partition_id
        or partition_id in {".", ".."}
        or partition_id != partition_id.strip()
        or "/" in partition_id
        or "\\" in partition_id
        or not partition_id.isprintable()
    ):
        raise ConfigurationError(
            f"partition id {partition_id!r} cannot be part of a record's key: "
            "it must be printable, without slashes or surrounding blanks"
        )
    return partition_id


def are_names_of(names: Sequence[str], group: ConsumerGroup) -> bool:
    """Return whether these are the group's names, whatever their case and port."""
    lowered = [name.lower() for name in names]
    ours, *rest = group.key
    return lowered[1:] == rest and without_port(lowered[0]) == without_port(ours)


def without_port(namespace: str) -> str:
    """Return the namespace without its port."""
    host, _, port = namespace.rpartition(":")
    return host if host and port.isdigit() else namespace


def new_name() -> str:
    """Return a random name, so that recreated records and restored backups never repeat one."""
    return secrets.token_hex(8)
