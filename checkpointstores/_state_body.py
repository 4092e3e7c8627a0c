"""A handler's state as the body of a checkpoint blob: framed, so that a reader knows what it has.

The frame names the sequence number that the state belongs to. An Azure SDK that moves the
checkpoint writes metadata only and keeps the body; without the number nobody could tell.
"""

import struct
from hashlib import blake2b
from typing import Final

from eventproc.errors import StoreCorruptError
from eventproc.models import STATE_BYTES_MAX

_MAGIC: Final = b"evpstate"
_VERSION: Final = 1
_DIGEST_BYTES: Final = 16
_FRAME: Final = struct.Struct(f">8sHQQ{_DIGEST_BYTES}s")
"""Magic, version, sequence number, length of the state, digest of all the rest."""

BODY_BYTES_MAX: Final = _FRAME.size + STATE_BYTES_MAX


def frame_state(state: bytes, sequence_number: int) -> bytes:
    """The body for a state; an empty state is an empty body."""
    if not state:
        return b""
    digest = _digest(_VERSION, sequence_number, state)
    return _FRAME.pack(_MAGIC, _VERSION, sequence_number, len(state), digest) + state


def unframe_state(body: bytes, name: str) -> tuple[bytes, int] | None:
    """The state and its sequence number; ``None`` for an empty body and for a stranger's.

    Raises:
        StoreCorruptError: it was a state, and is damaged. Starting without it would silently
            count from nothing, so this is for a person to decide. Also for a later version.
    """
    if len(body) < _FRAME.size or not body.startswith(_MAGIC):
        return None
    _, version, sequence_number, length, digest = _FRAME.unpack_from(body)
    if version != _VERSION:
        raise StoreCorruptError(
            f"the state in {name} has version {version}, written by a later eventproc: use that"
        )
    state = body[_FRAME.size :]
    if len(state) != length or _digest(version, sequence_number, state) != digest:
        raise StoreCorruptError(
            f"the state in {name} is damaged: restore the blob, or empty it to begin without state"
        )
    return state, sequence_number


def _digest(version: int, sequence_number: int, state: bytes) -> bytes:
    head = struct.pack(">HQ", version, sequence_number)
    return blake2b(head + state, digest_size=_DIGEST_BYTES).digest()
