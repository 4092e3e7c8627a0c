"""The fields of records that stores keep by name: how each is written, and how it is read.

A store adds how it keeps a text, a number, a truth value and ``None``. A new field of ``Member``
is one line here: blobs, tables and databases keep it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from eventproc.models import Isolation, MemberStatus, OffsetFormat


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
