"""States and group records: bytes of up to 4 MiB, in entities that hold 1 MiB each.

Rule 1: a content of up to ``INLINE_MAX`` bytes is a property of its record's entity.
Rule 2: a larger one is written in parts, each an entity whose key has a random version, and then
the record with that version. So the record's one conditional write decides which content is valid.
Rule 3: after the record's write, a store that won deletes the parts of the version that it
replaced. One whose outcome is ``LOST`` deletes its own new parts, unless the stored record names
them: the write may have been carried out, and adopted by the next owner before this one was
answered. After ``UNKNOWN`` nothing is deleted, because the record may have either version.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from checkpointstores.tables._requests import TableRequests
from checkpointstores.tables._table import Entity, Value, part_key
from eventproc._base.tasks import together
from eventproc.errors import StoreCorruptError, StoreError
from eventproc.models import ConsumerGroup

INLINE_MAX: Final = 60 * 1024
"""A property has at most 64 KiB."""

_PROPERTIES: Final = 12
_PART_MAX: Final = _PROPERTIES * INLINE_MAX
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one large content."""

    version: str
    count: int


def content_values(content: bytes, version: str) -> dict[str, Value]:
    """Return the properties of a record's entity: its content, or the version of its parts."""
    is_inline = len(content) <= INLINE_MAX
    return {
        "content": content if is_inline else b"",
        "content_version": version,
        "content_parts": 0 if is_inline else len(_pieces(content, _PART_MAX)),
        "content_digest": _digest(content),
    }


def parts_of(values: Any) -> Parts | None:  # noqa: ANN401 - properties of an entity
    """Return the parts of an entity's content; ``None`` if it is inline."""
    count = values.get("content_parts", 0)
    return Parts(version=values["content_version"], count=count) if count else None


async def write_parts(
    table: TableRequests, group: ConsumerGroup, content: bytes, version: str
) -> None:
    """Write the parts of a content, if it is a large one.

    Raises:
        StoreError: One could not be written.
    """
    if len(content) <= INLINE_MAX:
        return
    for number, part in enumerate(_pieces(content, _PART_MAX)):
        key = part_key(group, version, number)
        values: dict[str, Value] = {
            f"p{place}": piece for place, piece in enumerate(_pieces(part, INLINE_MAX))
        }
        await table.put(key, values)


async def delete_parts(table: TableRequests, group: ConsumerGroup, parts: Parts | None) -> None:
    """Delete parts that no record refers to. After an error the rest stays."""
    if parts is None:
        return
    for number in range(parts.count):
        try:
            await table.remove(part_key(group, parts.version, number))
        except StoreError:
            return


async def read_content(table: TableRequests, group: ConsumerGroup, entity: Entity) -> bytes | None:
    """Return the content of an entity; ``None`` if parts of it were deleted after it was read.

    Raises:
        StoreCorruptError: It is damaged.
    """
    values: dict[str, Any] = dict(entity.values)
    parts = parts_of(values)
    content: bytes = values.get("content", b"")
    if parts is not None:
        keys = [part_key(group, parts.version, number) for number in range(parts.count)]
        found = await together(*(table.read(key) for key in keys))
        if None in found:
            return None
        whole: list[Any] = [part.values for part in found if part is not None]
        content = b"".join(part[f"p{place}"] for part in whole for place in range(len(part)))
    if _digest(content) != values.get("content_digest", _digest(b"")):
        raise StoreCorruptError(
            f"the content of {entity.key.row!r} ({entity.key.partition}) is damaged: restore the "
            "table, or begin without state with `eventproc checkpoints reset`"
        )
    return content


def _pieces(content: bytes, size: int) -> list[bytes]:
    return [content[at : at + size] for at in range(0, len(content), size)]


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()
