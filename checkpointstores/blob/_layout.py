"""The body of a group record's blob: its content, with magic, version and digest before it.

The layout of records in a blob container: that of Azure's event processors, with additions.

Rule 1: ownership and checkpoints are written as the Azure SDKs write them, so that their processors
can share a group with ours. We add metadata keys of our own; the SDKs ignore them.
Rule 2: any program may have written a blob, so reading a malformed one never raises.
Rule 3: additions are stored where the Azure SDKs do not read.

All functions are pure. The layout was taken from the stores of azure-eventhub-checkpointstoreblob
(Python), Azure.Messaging.EventHubs.Processor (.NET) and of the SDKs for Java, JavaScript and Go.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from math import isfinite
from string import ascii_letters, digits, punctuation
from typing import Any, Final
from urllib.parse import quote, unquote

from checkpointstores._fields import MEMBER, Field, are_names_of, without_port
from checkpointstores._rows import groups_of
from checkpointstores.blob._container import BlobItem
from eventproc._base.bounded_json import read_json
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET, BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup, Member, PartitionOwnership
from eventproc.models._checkpoint import NO_OFFSETS

_DIGITS_MAX: Final = 100
"""Most digits of a number in metadata: Python converts no number of thousands of digits."""

_ALWAYS: Final = {
    *("owner_id", "incarnation", "status", "hands_over", "weight"),
    *("deployment_id", "offset_format", "version"),
}
"""Fields of a member that are written with their default values, too. Others are left out then."""

_OWNER_ID: Final = "ownerid"
_EPOCH: Final = "eventprocepoch"
"""An addition: the fencing token. Azure SDKs ignore it, and their writes erase it."""

_OFFSET: Final = "offset"
_SEQUENCE_NUMBER: Final = "sequencenumber"
_WRITER: Final = "eventprocwriter"
"""An addition: the pump that wrote the checkpoint. Azure SDKs ignore it, and their writes erase
it."""

_RECORDS: Final = "!records/"
"""The folder of group records, below that of members: no member's blob has such a name."""

_PARTS: Final = 5
"""Of the name of a record's blob: namespace, hub, group, kind and partition."""

_RECORD_NAME: Final = "eventprocrecord"

_SEQUENCE_NUMBER_MAX: Final = 2**63 - 1

_PLAIN: Final = "".join(sorted(set(ascii_letters + digits + punctuation) - {"%"}))
"""Characters of a metadata value that are stored unchanged. All others are percent-encoded, because
HTTP headers cannot carry them."""

_NAME_CHARACTERS_MAX: Final = 200
"""A longer owner id or record name is truncated and hashed in a blob's name, because a name has at
most 1,024 characters."""


class RecordKind(Enum):
    """The folder of a record."""

    OWNERSHIP = "ownership"
    CHECKPOINT = "checkpoint"
    MEMBER = "member"
    """An addition. It is not below the other two folders, because an Azure SDK fails its whole
    listing if it finds an unknown blob there. Group records are below it, so that one listing
    returns the members and the ETags of group records."""


def home(group: ConsumerGroup, *, exact_names: bool = False) -> str:
    """Return what the names of all the group's blobs begin with, without a slash at its end.

    Raises:
        ConfigurationError: a name is ``.`` or ``..``, which HTTP clients resolve as a path.
    """
    if {".", ".."} & set(group.key):
        raise ConfigurationError(f"{group} has a name of dots: blob storage cannot store it")
    return "/".join(_configured(group) if exact_names else group.key)


def _configured(group: ConsumerGroup) -> tuple[str, str, str]:
    return (group.fully_qualified_namespace, group.eventhub_name, group.name)


def folder(home: str, kind: RecordKind) -> str:
    """Return the common prefix of the names of a group's records, with a slash at its end."""
    return f"{home}/{kind.value}/"


def part_below(folder_name: str, blob_name: str) -> str | None:
    """Return the part of a blob's name below its folder; ``None`` unless it is directly in it."""
    part = blob_name.removeprefix(folder_name)
    return None if part == blob_name or not part or "/" in part else part


# --- names spelled in several ways ----------------------------------------------------------------

# Most SDKs write names in lower case, those for Go and Rust as they are configured. If a connection
# string has a port, the SDKs for JavaScript and Java use the host alone as the namespace, while
# those for Python and Go, and eventproc, keep the port. Then two groups of processors read the same
# hub, and neither sees the records of the other.


def other_spelling_prefixes(group: ConsumerGroup, home: str) -> set[str]:
    """Return prefixes that the group's ownership blobs have under other spellings than *home*.

    Case that is neither lower nor as configured is not looked for, except beside another port.
    """
    prefixes = set()
    for namespace, *rest in (group.key, _configured(group)):
        host = without_port(namespace)
        homes = {"/".join((spelled, *rest)) for spelled in (namespace, host)} - {home}
        prefixes |= {folder(other, RecordKind.OWNERSHIP) for other in homes}
        if host == namespace:
            prefixes.add(f"{host}:")
    return prefixes


def record_of(name: str, group: ConsumerGroup) -> tuple[str, str, str] | None:
    """Return home, kind and partition of a record of an Azure SDK, whose names are spelled anyhow.

    ``None`` for a blob of another group, or of another kind.
    """
    home, *rest = name.rsplit("/", 2)
    if len(rest) != len(("kind", "partition")) or not are_names_of(home.split("/"), group):
        return None
    kind, partition_id = rest[0].lower(), rest[1]
    is_record = kind in {RecordKind.CHECKPOINT.value, RecordKind.OWNERSHIP.value}
    return (home, kind, partition_id) if is_record and partition_id else None


def groups_in(names: Iterable[str]) -> list[ConsumerGroup]:
    """Return the groups that have ownership or checkpoint blobs among these names."""
    kinds = {RecordKind.CHECKPOINT.value, RecordKind.OWNERSHIP.value}
    parts = (name.lower().split("/") for name in names)
    homes = {
        tuple(home)
        for *home, kind, partition_id in (p for p in parts if len(p) == _PARTS and all(p))
        if kind in kinds and partition_id
    }
    return groups_of(sorted(homes))


def settings_to_share(group: ConsumerGroup, home: str) -> dict[str, str | bool]:
    """Return the store's settings with which the group has the other spelling of *home*."""
    namespace, *_ = home.split("/")
    settings: dict[str, str | bool] = {}
    if namespace.lower() != group.key[0]:
        settings["namespace"] = namespace
    if home != home.lower():
        settings["exact_names"] = True
    return settings


# --- ownership -----------------------------------------------------------------------------------


def ownership_metadata(owner_id: str | None, epoch: int) -> dict[str, str]:
    """Return the whole metadata of an ownership blob; ``None`` for a released partition."""
    metadata = {_OWNER_ID: _quoted(owner_id or "")}
    return metadata | {_EPOCH: str(epoch)} if epoch else metadata


def owner_in(metadata: Mapping[str, str | None]) -> tuple[str | None, int]:
    """Return the owner and the fencing token, which is 0 if there is none.

    The owner is ``None`` for a released record and for one without an owner id.
    A record without an owner id has to count as released. If it was ignored, no processor could
    claim its partition: the blob exists, so replacing it requires its ETag.
    """
    values = _lowered(metadata)
    return _unquoted(values.get(_OWNER_ID, "")) or None, _count_in(values.get(_EPOCH, "")) or 0


def as_ownership(partition_id: str, item: BlobItem) -> PartitionOwnership:
    """Return the ownership record in a blob."""
    owner_id, epoch = owner_in(item.metadata)
    return PartitionOwnership(
        partition_id=partition_id,
        owner_id=owner_id,
        epoch=epoch,
        etag=item.etag,
        last_modified=item.last_modified,
    )


# --- checkpoints ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position in a checkpoint blob; missing or unusable values are ``None``."""

    offset: str | None
    sequence_number: int | None
    writer: str | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a receiver can start from it."""
        return self.offset is not None or self.sequence_number is not None


def checkpoint_metadata(offset: str, sequence_number: int, writer: str) -> dict[str, str]:
    """Return the whole metadata of a checkpoint blob: offset and sequence number, never empty.

    An HTTP header can carry every offset that ``CheckpointUpdate`` accepts.
    """
    return {_OFFSET: offset, _SEQUENCE_NUMBER: str(sequence_number), _WRITER: _quoted(writer)}


def position_in(metadata: Mapping[str, str | None]) -> Position:
    """Return the position, from any format that the Azure SDKs write.

    .NET 5.11 writes ``no offset``, .NET 5.12 and later leave either value empty, Python writes
    ``None`` for an event without an offset, other SDKs omit keys. Filebeat writes offset -1 with
    number 0 before the first event.
    """
    lowered = _lowered(metadata)
    offset, number = lowered.get(_OFFSET, ""), lowered.get(_SEQUENCE_NUMBER, "")
    position = _position(offset, number)
    return replace(position, writer=_unquoted(lowered.get(_WRITER, "")) or None)


def _position(offset: str, number: str) -> Position:
    sequence_number = _sequence_number(number)
    if offset == BEFORE_FIRST_OFFSET and not sequence_number:
        # Written before the first event came, with number 0, too: that event is not handled.
        return Position(offset=offset, sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER)
    return Position(
        offset=None if offset.lower() in NO_OFFSETS else offset, sequence_number=sequence_number
    )


def _sequence_number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        return None
    number = int(text)
    return number if number <= _SEQUENCE_NUMBER_MAX else None


def legacy_folder(prefix: str, group: ConsumerGroup) -> str:
    """Return the folder of legacy leases, whose names are not lower-cased.

    ``EventProcessorHost`` uses any prefix; Azure Functions uses ``{namespace}/{hub}/``.
    """
    return f"{prefix}{group.name}/"


def legacy_position(body: bytes) -> Position | None:
    """Return the position in a lease of ``EventProcessorHost`` or Azure Functions, if any.

    .NET writes ``SequenceNumber``, Java ``sequenceNumber``, Python ``sequence_number``, and Go puts
    both values into ``checkpoint``.
    """
    try:
        lease = read_json(body.decode("utf-8-sig"))
    except ValueError:
        return None
    values = _lease_values(lease)
    values = _lease_values(values.get("checkpoint")) or values
    offset, number = values.get(_OFFSET), values.get(_SEQUENCE_NUMBER)
    # A lease without a checkpoint has no offset, and its sequence number 0 has no meaning.
    if not isinstance(offset, str):
        return None
    offset = offset.strip()
    position = _position(offset, "" if offset == BEFORE_FIRST_OFFSET else str(number))
    if position.offset is None and not position.sequence_number:
        return None
    return position


def _lease_values(found: object) -> dict[str, object]:
    if not isinstance(found, dict):
        return {}
    return {str(key).lower().replace("_", ""): value for key, value in found.items()}


# --- members -------------------------------------------------------------------------------------


def member_blob(home: str, owner_id: str) -> str:
    """Return the name of a member blob. The owner id is read from its metadata, not its name."""
    return folder(home, RecordKind.MEMBER) + _as_part(owner_id)


def _as_part(text: str) -> str:
    """Return any text as one part of a blob's name, without slashes and dots."""
    quoted = quote(text, safe="").replace(".", "%2E")
    if len(quoted) > _NAME_CHARACTERS_MAX:
        digest = hashlib.sha256(text.encode()).hexdigest()
        quoted = f"{quoted[: _NAME_CHARACTERS_MAX - len(digest) - 1]}~{digest}"
    return quoted


def member_metadata(member: Member) -> dict[str, str]:
    """Return the whole metadata of a member blob."""
    stored = [(field, field.written(member)) for field in MEMBER]
    return {
        _key_of(field): _text_of(value)
        for field, value in stored
        if field.name in _ALWAYS or value != field.default
    }


def member_in(
    metadata: Mapping[str, str | None], *, etag: str, last_modified: datetime
) -> Member | None:
    """Return the member record; ``None`` if the blob has no owner id or no incarnation."""
    values = _lowered(metadata)
    fields = {field.name: _value_in(values.get(_key_of(field), ""), field) for field in MEMBER}
    if not fields["owner_id"] or not fields["incarnation"]:
        return None
    return Member(**fields, etag=etag, last_modified=last_modified)


def _key_of(field: Field) -> str:
    return field.name.replace("_", "")


def _text_of(value: object) -> str:
    return _quoted(value) if isinstance(value, str) else repr(value).lower()


def _value_in(text: str, field: Field) -> Any:  # noqa: ANN401 - of any field
    """Return the value of a field, its default if the text does not have one."""
    stored: object
    if field.type is bool:
        stored = {"true": True, "false": False}.get(text)
    elif field.type is int:
        stored = _count_in(text)
    elif field.type is float:
        stored = _float_in(text)
    else:
        stored = _unquoted(text) or None
    return field.default if stored is None else field.read(stored)


def _float_in(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None


def _count_in(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else None


# --- group records -------------------------------------------------------------------------------


def record_blob(home: str, name: str) -> str:
    """Return the name of a group record's blob."""
    return folder(home, RecordKind.MEMBER) + _RECORDS + _as_part(name)


def record_metadata(name: str, write_id: str) -> dict[str, str]:
    """Return the whole metadata of a group record's blob; *write_id* is unique to one write."""
    return {_RECORD_NAME: _quoted(name), _WRITER: write_id}


def record_in(metadata: Mapping[str, str | None]) -> str | None:
    """Return the name of a group record; ``None`` if the blob is no group record."""
    return _unquoted(_lowered(metadata).get(_RECORD_NAME, "")) or None


# --- metadata values -----------------------------------------------------------------------------


def _lowered(metadata: Mapping[str, str | None]) -> dict[str, str]:
    """Return keys in lower case, values without surrounding blanks, and ``None`` as empty."""
    return {key.lower(): (value or "").strip() for key, value in metadata.items()}


def _quoted(value: str) -> str:
    """Percent-encode characters that a header cannot carry; usual identifiers stay unchanged."""
    return quote(value, safe=_PLAIN)


def _unquoted(value: str) -> str:
    """Undo ``_quoted``. A value that ``_quoted`` does not write (``%41``) stays unchanged."""
    if "%" not in value:
        return value
    plain = unquote(value)
    return plain if _quoted(plain) == value else value
