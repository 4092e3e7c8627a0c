"""The body of a group record's blob: its content, with magic, version and digest before it."""

import struct
from hashlib import blake2b
from typing import Final

from eventproc.errors import StoreCorruptError
from eventproc.models import RECORD_BYTES_MAX

_MAGIC: Final = b"evprecrd"
_VERSION: Final = 1
_DIGEST_BYTES: Final = 16
_FRAME: Final = struct.Struct(f">8sH{_DIGEST_BYTES}s")
"""Magic, version, digest of the content. The content follows."""

RECORD_BODY_BYTES_MAX: Final = _FRAME.size + RECORD_BYTES_MAX


def frame_record(content: bytes) -> bytes:
    """Encode the content of a group record."""
    return _FRAME.pack(_MAGIC, _VERSION, _digest(content)) + content


def unframe_record(body: bytes, name: str) -> bytes:
    """Decode the content of a group record.

    Raises:
        StoreCorruptError: the body is damaged, of another program, or of a later version.
    """
    content = body[_FRAME.size :]
    if len(body) < _FRAME.size or not body.startswith(_MAGIC):
        raise _damaged(name)
    _, version, digest = _FRAME.unpack_from(body)
    if version > _VERSION:
        raise StoreCorruptError(
            f"the record {name} has version {version}, written by a later eventproc: use that"
        )
    if digest != _digest(content):
        raise _damaged(name)
    return content


def _damaged(name: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"the record {name} is damaged: delete the blob, and the group writes it again"
    )


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()
