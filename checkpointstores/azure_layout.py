"""How Azure's event processors lay out their records in a blob container, and how we add to it.

Rule 1: what is written is exactly what the Azure SDKs write, so that their processors can share
a group with ours.
Rule 2: what is read may have been written by anybody: nothing here fails on an odd blob.
Rule 3: what is ours alone lies where their readers never look.

All functions are pure. Sources: the stores of azure-eventhub-checkpointstoreblob (Python),
Azure.Messaging.EventHubs.Processor (.NET) and their Java, JavaScript and Go siblings.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from string import ascii_letters, digits, punctuation
from typing import Final
from urllib.parse import quote, unquote

from eventproc.core.progress import BEFORE_FIRST_OFFSET, BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.errors import ConfigurationError
from eventproc.membership import LeaseMode, Member, MemberStatus
from eventproc.models import ConsumerGroup, Numbering

_OWNER_ID: Final = "ownerid"
_OFFSET: Final = "offset"
_SEQUENCE_NUMBER: Final = "sequencenumber"
_WRITER: Final = "eventprocwriter"
"""Ours: which pump wrote the checkpoint. Other SDKs ignore it, and their writes erase it."""

_NO_OFFSET: Final = "no offset"
"""Written by .NET 5.11 in place of an offset that it does not have."""

_SEQUENCE_NUMBER_MAX: Final = 2**63 - 1

_PLAIN: Final = "".join(sorted(set(ascii_letters + digits + punctuation) - {"%"}))
"""Characters that a metadata value carries as they are; a header is no place for others."""

_NAME_CHARACTERS_MAX: Final = 200
"""A longer owner id is cut and hashed in a blob's name, which has at most 1,024 characters."""


class RecordKind(Enum):
    """The folder that a record lies in."""

    OWNERSHIP = "ownership"
    CHECKPOINT = "checkpoint"
    MEMBER = "member"
    """Ours. Not below the other two: an Azure reader fails its whole listing on a stranger."""


def folder(group: ConsumerGroup, kind: RecordKind) -> str:
    """The common beginning of the names of a group's records, with the slash at its end.

    Raises:
        ConfigurationError: a name of dots would be taken for a path on the way to the service.
    """
    if {".", ".."} & set(group.key):
        raise ConfigurationError(f"{group} has a name of dots: blob storage cannot keep it")
    return "/".join((*group.key, kind.value, ""))


def part_below(folder_name: str, blob_name: str) -> str | None:
    """The one part of a blob's name below its folder; ``None`` for stubs and nested blobs."""
    part = blob_name.removeprefix(folder_name)
    return None if part == blob_name or not part or "/" in part else part


# --- ownership -----------------------------------------------------------------------------------


def ownership_metadata(owner_id: str | None) -> dict[str, str]:
    """The whole metadata of an ownership blob; ``None`` is a released one."""
    return {_OWNER_ID: _quoted(owner_id or "")}


def owner_id_in(metadata: Mapping[str, str | None]) -> str | None:
    """The owner; ``None`` for a released record and for one that does not say.

    One that does not say has to count as free: it exists, so it can only be replaced by who
    knows its etag, and leaving it out would keep its partition from everybody for ever.
    """
    return _unquoted(_lowered(metadata).get(_OWNER_ID, "")) or None


# --- checkpoints ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What a checkpoint says; neither field is set where it says nothing of use."""

    offset: str | None
    sequence_number: int | None
    writer: str | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a receiver could start from it."""
        return self.offset is not None or self.sequence_number is not None


def checkpoint_metadata(offset: str, sequence_number: int, writer: str) -> dict[str, str]:
    """The whole metadata of a checkpoint blob: both positions, never empty.

    Raises:
        ConfigurationError: the offset cannot travel in a header, or means "none" to others.
    """
    if not offset.isascii() or not offset.isprintable() or offset != offset.strip():
        raise ConfigurationError(f"offset {offset!r} cannot be stored: give printable ASCII")
    if offset == _NO_OFFSET:
        raise ConfigurationError(f"offset {offset!r} means to other readers that there is none")
    return {_OFFSET: offset, _SEQUENCE_NUMBER: str(sequence_number), _WRITER: _quoted(writer)}


def position_in(metadata: Mapping[str, str | None]) -> Position:
    """The position, from any of the formats in the wild.

    .NET 5.11 writes ``no offset``, .NET 5.12 and later leave either value empty, others leave
    keys out.
    """
    lowered = _lowered(metadata)
    offset, number = lowered.get(_OFFSET, ""), lowered.get(_SEQUENCE_NUMBER, "")
    return Position(
        offset=None if offset in {"", _NO_OFFSET} else offset,
        sequence_number=(
            BEFORE_FIRST_SEQUENCE_NUMBER
            if (offset, number) == (BEFORE_FIRST_OFFSET, str(BEFORE_FIRST_SEQUENCE_NUMBER))
            else _sequence_number(number)
        ),
        writer=_unquoted(lowered.get(_WRITER, "")) or None,
    )


def _sequence_number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()):
        return None
    number = int(text)
    return number if number <= _SEQUENCE_NUMBER_MAX else None


def legacy_folder(prefix: str, group: ConsumerGroup) -> str:
    """Where processors before this layout kept their leases: names as given, not lower-cased.

    ``EventProcessorHost`` uses any prefix; Azure Functions uses ``{namespace}/{hub}/``.
    """
    return f"{prefix}{group.name}/"


def legacy_position(body: bytes) -> Position | None:
    """The position in a lease of ``EventProcessorHost`` or Azure Functions, if it has one."""
    try:
        lease = json.loads(body.decode("utf-8-sig"))
    except ValueError:
        return None
    if not isinstance(lease, dict):
        return None
    values = {str(key).lower(): value for key, value in lease.items()}
    offset, number = values.get(_OFFSET), values.get(_SEQUENCE_NUMBER)
    # A lease that was never checkpointed has no offset, and sequence number 0 means nothing then.
    if not isinstance(offset, str):
        return None
    position = Position(
        offset=offset.strip() or None,
        sequence_number=_sequence_number(str(number)) if type(number) in {int, str} else None,
    )
    return position if position.is_usable else None


# --- members -------------------------------------------------------------------------------------

_STATUS_BY_NAME: Final = {status.value: status for status in MemberStatus}
_LEASE_MODE_BY_NAME: Final = {mode.value: mode for mode in LeaseMode}
_NUMBERING_BY_NAME: Final = {numbering.value: numbering for numbering in Numbering}


def member_blob(group: ConsumerGroup, owner_id: str) -> str:
    """The name of a processor's presence blob. The metadata, not the name, says who it is."""
    quoted = quote(owner_id, safe="").replace(".", "%2E")
    if len(quoted) > _NAME_CHARACTERS_MAX:
        digest = hashlib.sha256(owner_id.encode()).hexdigest()
        quoted = f"{quoted[: _NAME_CHARACTERS_MAX - len(digest) - 1]}~{digest}"
    return folder(group, RecordKind.MEMBER) + quoted


def member_metadata(member: Member) -> dict[str, str]:
    """The whole metadata of a presence blob."""
    return {
        _OWNER_ID: _quoted(member.owner_id),
        "incarnation": _quoted(member.incarnation),
        "status": member.status.value,
        "handsover": str(member.hands_over).lower(),
        "weight": repr(member.weight),
        "generation": _quoted(member.generation),
        "leasemode": member.lease_mode.value,
        "numbering": member.numbering.value,
        "version": _quoted(member.version),
    }


def member_in(
    metadata: Mapping[str, str | None], *, etag: str, last_modified: datetime
) -> Member | None:
    """The member; ``None`` where the blob does not say whose presence it is."""
    values = _lowered(metadata)
    owner_id = _unquoted(values.get(_OWNER_ID, ""))
    incarnation = _unquoted(values.get("incarnation", ""))
    if not owner_id or not incarnation:
        return None
    try:
        weight = float(values.get("weight", "1.0"))
    except ValueError:
        weight = 1.0
    return Member(
        owner_id=owner_id,
        incarnation=incarnation,
        status=_STATUS_BY_NAME.get(values.get("status", ""), MemberStatus.ACTIVE),
        hands_over=values.get("handsover") != "false",
        weight=weight,
        generation=_unquoted(values.get("generation", "")),
        lease_mode=_LEASE_MODE_BY_NAME.get(values.get("leasemode", ""), LeaseMode.PARTITION),
        numbering=_NUMBERING_BY_NAME.get(values.get("numbering", ""), Numbering.AMQP),
        version=_unquoted(values.get("version", "")),
        etag=etag,
        last_modified=last_modified,
    )


# --- metadata values -----------------------------------------------------------------------------


def _lowered(metadata: Mapping[str, str | None]) -> dict[str, str]:
    """Keys in lower case, values without surrounding blanks; an empty one may come as ``None``."""
    return {key.lower(): (value or "").strip() for key, value in metadata.items()}


def _quoted(value: str) -> str:
    """Percent-encode what a header cannot carry; the usual identifier stays as it is."""
    return quote(value, safe=_PLAIN)


def _unquoted(value: str) -> str:
    """Undo ``_quoted``, and leave alone what it would not have written: another SDK's ``%41``."""
    if "%" not in value:
        return value
    plain = unquote(value)
    return plain if _quoted(plain) == value else value
