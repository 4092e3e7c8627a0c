"""Contents: inline up to 60 KiB, in parts beyond, and damage is noticed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores.tables._contents import (
    INLINE_MAX,
    Parts,
    content_values,
    delete_parts,
    parts_of,
    read_content,
    write_parts,
)
from checkpointstores.tables._table import Entity, Key
from eventproc.errors import StoreCorruptError, StoreUnavailableError
from eventproc.models import ConsumerGroup
from tests.unit.checkpointstores.tables.test_renewals import NOW

GROUP = ConsumerGroup.of_resources("jobs")
PROPERTY_MAX, ENTITY_MAX = 64 * 1024, 1024 * 1024


class MemoryTable:
    """The parts in a table, without the rest of it."""

    def __init__(self):
        self.entities = {}

    async def put(self, key, values):
        """Keep an entity."""
        self.entities[key] = Entity(key=key, etag="e", last_modified=NOW, values=values)

    async def read(self, key):
        """Return an entity, or none."""
        return self.entities.get(key)

    async def remove(self, key):
        """Forget an entity."""
        self.entities.pop(key, None)


def empty_table() -> Any:
    """Return a table for the functions of ``_contents.py``."""
    return MemoryTable()


def record(content):
    """Return a record's entity that names a content."""
    values = content_values(content, "v1")
    return Entity(key=Key(partition="g", row="0"), etag="e", last_modified=NOW, values=values)


@pytest.mark.parametrize("size", [0, 1, INLINE_MAX, INLINE_MAX + 1, 4 * 1024 * 1024])
async def test_a_content_comes_back_and_fits_into_entities(size):
    """No property has more than 64 KiB, no entity more than 1 MiB."""
    table, content = empty_table(), bytes(range(251)) * (size // 251) + bytes(size % 251)
    await write_parts(table, GROUP, content, "v1")
    entity = record(content)

    assert await read_content(table, GROUP, entity) == content
    assert bool(table.entities) == (size > INLINE_MAX)
    for part in (entity, *table.entities.values()):
        lengths = [len(value) for value in part.values.values() if isinstance(value, bytes)]
        assert max(lengths, default=0) <= PROPERTY_MAX
        assert sum(lengths) < ENTITY_MAX - 4096


async def test_a_content_whose_parts_are_gone_is_read_again():
    """Somebody replaced it in the meantime."""
    table, content = empty_table(), bytes(INLINE_MAX + 1)
    await write_parts(table, GROUP, content, "v1")
    parts = parts_of(record(content).values)
    await delete_parts(table, GROUP, parts)

    assert parts == Parts(version="v1", count=1)
    assert table.entities == {}
    assert await read_content(table, GROUP, record(content)) is None


@given(at=st.integers(0, INLINE_MAX))
def test_the_digest_notices_each_changed_byte(at):
    """Also in a content of many properties: a state never begins damaged."""
    content = bytes(INLINE_MAX + 1)
    changed = content[:at] + b"x" + content[at + 1 :]

    assert (
        content_values(content, "v")["content_digest"]
        != content_values(changed, "v")["content_digest"]
    )


async def test_a_damaged_content_is_an_error():
    """It names the record."""
    entity = record(b"state")
    values = dict(entity.values) | {"content": b"stale"}
    damaged = Entity(key=entity.key, etag="e", last_modified=NOW, values=values)
    with pytest.raises(StoreCorruptError, match="content of '0'"):
        await read_content(empty_table(), GROUP, damaged)


async def test_parts_that_cannot_be_deleted_fail_nothing():
    """They only cost space."""

    class SilentTable(MemoryTable):
        async def remove(self, key):
            raise StoreUnavailableError("no answer")

    silent: Any = SilentTable()
    await delete_parts(silent, GROUP, Parts(version="v1", count=3))
