"""The bodies of blobs: what a checkpoint has besides its position, and a group record's content.

A checkpoint's body is state, completed ranges and isolation. It has a frame with magic, version and
digest, and contains the sequence numbers that it belongs to. An Azure SDK that moves the checkpoint
writes metadata only and keeps the body; the sequence numbers show that the body belongs to another
position.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from eventproc._base.bounded_json import read_json
from eventproc.errors import StoreCorruptError
from eventproc.models import (
    COMPLETED_RANGES_MAX,
    NOT_BEGUN,
    RECORD_BYTES_MAX,
    STATE_BYTES_MAX,
    Checkpoint,
    Isolation,
    SequenceRange,
)

_DIGEST_BYTES: Final = 16

_MAGIC: Final = b"evpstate"

_VERSION: Final = 1
_FRAME: Final = struct.Struct(f">8sHI{_DIGEST_BYTES}s")
"""Magic, version, length of the head, digest of head and state. Head and state follow."""

_RANGE_BYTES_MAX: Final = len(json.dumps([2**63, 2**63])) + 2
_HEAD_BYTES_MAX: Final = 512 + COMPLETED_RANGES_MAX * _RANGE_BYTES_MAX

BODY_BYTES_MAX: Final = _FRAME.size + _HEAD_BYTES_MAX + STATE_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointBody:
    """The decoded body. The default is an empty one, as the Azure SDKs write it."""

    state: bytes | None = None
    state_sequence_number: int | None = None
    """The sequence number of the checkpoint that the state was written with."""

    sequence_number: int = -1
    """The sequence number that ``completed`` and ``isolation`` belong to."""

    completed: tuple[SequenceRange, ...] = ()
    isolation: Isolation = NOT_BEGUN


def frame_body(body: CheckpointBody | Checkpoint) -> bytes:
    """Encode a body. A body without state, completed ranges and isolation is empty."""
    if not (body.state or body.completed) and body.isolation == NOT_BEGUN:
        return b""
    head: dict[str, Any] = {"sequence_number": body.sequence_number}
    if body.state:
        head["state_sequence_number"] = body.state_sequence_number
    if body.completed:
        head["completed"] = [[done.first, done.last] for done in body.completed]
    if body.isolation != NOT_BEGUN:
        head["isolation"] = str(body.isolation)
    encoded = json.dumps(head, separators=(",", ":")).encode()
    state = body.state or b""
    return _FRAME.pack(_MAGIC, _VERSION, len(encoded), _digest(encoded, state)) + encoded + state


def unframe_body(body: bytes, name: str) -> CheckpointBody | None:
    """Decode a body; ``None`` if it is empty or not in this format.

    Raises:
        StoreCorruptError: the body is in this format and damaged, or of another version. Starting
            without the state could silently give wrong results, so an operator has to decide.
    """
    if not body.startswith(_MAGIC):
        return None
    version = int.from_bytes(body[len(_MAGIC) : len(_MAGIC) + 2])
    if version != _VERSION:
        raise StoreCorruptError(
            f"the state in {name} has version {version}, written by another version of eventproc "
            f"(this one knows {_VERSION}): use that one"
        )
    try:
        return _unframe(body)
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise StoreCorruptError(
            f"the state in {name} is damaged: restore the blob, or begin without state with "
            "`eventproc checkpoints reset`"
        ) from error


def _unframe(body: bytes) -> CheckpointBody:
    _, _, head_length, digest = _FRAME.unpack_from(body)
    encoded = body[_FRAME.size : _FRAME.size + head_length]
    state = body[_FRAME.size + head_length :]
    if _digest(encoded, state) != digest:
        raise ValueError("the digest does not match")
    # Unknown keys are ignored.
    head: Mapping[str, Any] = read_json(encoded)
    return CheckpointBody(
        state=state or None,
        state_sequence_number=head["state_sequence_number"] if state else None,
        sequence_number=head["sequence_number"],
        completed=tuple(SequenceRange(*pair) for pair in head.get("completed", ())),
        isolation=Isolation.parse(str(head.get("isolation", NOT_BEGUN))),
    )


# --- group records -------------------------------------------------------------------------------

_RECORD_MAGIC: Final = b"evprecrd"
_RECORD_VERSION: Final = 1
_RECORD_FRAME: Final = struct.Struct(f">8sH{_DIGEST_BYTES}s")
"""Magic, version, digest of the content. The content follows."""

RECORD_BODY_BYTES_MAX: Final = _RECORD_FRAME.size + RECORD_BYTES_MAX


def frame_record(content: bytes) -> bytes:
    """Encode the content of a group record."""
    return _RECORD_FRAME.pack(_RECORD_MAGIC, _RECORD_VERSION, _digest(content)) + content


def unframe_record(body: bytes, name: str) -> bytes:
    """Decode the content of a group record.

    Raises:
        StoreCorruptError: the body is damaged, of another program, or of a later version.
    """
    content = body[_RECORD_FRAME.size :]
    version, digest = 0, b""
    if len(body) >= _RECORD_FRAME.size and body.startswith(_RECORD_MAGIC):
        _, version, digest = _RECORD_FRAME.unpack_from(body)
    if version > _RECORD_VERSION:
        raise StoreCorruptError(
            f"the record {name} has version {version}, written by a later eventproc: use that"
        )
    if digest != _digest(content):
        raise StoreCorruptError(
            f"the record {name} is damaged: delete the blob, and the group writes it again"
        )
    return content


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()
