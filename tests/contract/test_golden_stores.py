"""Stored formats: today's code reads the golden files of every store, and writes them again.

``golden_records.py`` has the records, ``docs/wire-format.md`` describes the formats. From the tag
0.1.0 on the files are frozen: a change that fails here breaks groups of two versions. Until then,
after a change of a format (the stores of files, dead letters and offsets are in
``test_golden_files.py``):

    WRITE_GOLDEN=1 .venv/bin/python -m pytest -n0 tests/contract/test_golden_stores.py
"""

import sqlite3
from contextlib import asynccontextmanager, closing
from itertools import count

import psycopg
import pytest
from psycopg.rows import dict_row

from checkpointstores._requests import Written
from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.blob._container import BlobItem, Listing
from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.postgres import _store as postgres_store
from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.sqlite import _records as sqlite_records
from checkpointstores.sqlite._clock import Boot, HostClock
from checkpointstores.tables import TableCheckpointStore
from checkpointstores.tables import _store as table_store
from checkpointstores.tables import _table as table
from checkpointstores.tables._contents import INLINE_MAX
from eventproc.models import MemberStatus, OffsetFormat
from tests.contract.golden_records import (
    GROUP,
    NOW,
    as_json,
    at,
    check_written,
    from_json,
    golden_text,
    names,
    read_all,
    write_all,
    written_records,
)

# --- blobs ---------------------------------------------------------------------------------------


class MemoryContainer:
    """A blob container in this process, which ignores the conditions of writes."""

    def __init__(self, blobs=()):
        self._versions = count(1)
        self.blobs = {}
        for blob in blobs:
            self._keep(blob["name"], blob["metadata"], blob["body"])

    def _keep(self, name, metadata, body):
        etag = f"version {next(self._versions)}"
        self.blobs[name] = BlobItem(
            name=name, etag=etag, last_modified=NOW, metadata=metadata, body=body
        )
        return Written(etag=etag, last_modified=NOW)

    async def list(self, prefix):
        items = tuple(item for name, item in self.blobs.items() if name.startswith(prefix))
        return Listing(items=items, as_of=NOW)

    async def read(self, name, *, body_bytes_max=0):
        return self.blobs.get(name)

    async def put(self, name, metadata, body, *, etag):
        kept = self.blobs[name].body if etag is not None and body is None else b""
        return self._keep(name, metadata, kept if body is None else body)

    async def open(self):
        """Do nothing: there is no connection."""

    async def close(self):
        """Do nothing: there is no connection."""


@asynccontextmanager
async def blob_store(container):
    """Open a blob store over a ``MemoryContainer``."""
    store = BlobCheckpointStore("https://golden.blob.core.windows.net", "golden")
    store._blobs.vendor = container
    async with store:
        yield store


async def test_golden_blobs_are_written_again(monkeypatch):
    """Names, metadata and bodies."""
    drawn = names()
    monkeypatch.setattr("secrets.token_hex", lambda _: drawn())
    container = MemoryContainer()
    async with blob_store(container) as store:
        await write_all(store)
    blobs = [
        {"name": blob.name, "metadata": blob.metadata, "body": blob.body}
        for blob in container.blobs.values()
    ]

    check_written("blobs.json", as_json(blobs))


async def test_golden_blobs_are_read():
    """Ownership, members, checkpoints and the group record have the values that were written."""
    container = MemoryContainer(from_json(golden_text("blobs.json")))
    async with blob_store(container) as store:
        assert await read_all(store) == await written_records()


async def test_unknown_words_in_a_member_blob_read_as_the_default():
    """A value that this version does not know, in any field of a member record."""
    [blob] = [
        blob for blob in from_json(golden_text("blobs.json")) if blob["name"].endswith("/LEAVING")
    ]
    unknown = dict.fromkeys(blob["metadata"].keys() - {"ownerid", "incarnation"}, "x")
    blob["metadata"] |= unknown | {"x": "x"}
    async with blob_store(MemoryContainer([blob])) as store:
        [member] = (await store.list_members(GROUP)).members

    assert (member.status, member.offset_format, member.weight) == (
        *(MemberStatus.ACTIVE, OffsetFormat.AMQP, 1.0),
    )


# --- Azure tables --------------------------------------------------------------------------------

LARGE = at(42, partition_id="large", state=b"x" * (INLINE_MAX + 1))
"""A checkpoint with a state that a table stores in parts."""


class MemoryTable:
    """A table in this process, which ignores the conditions of writes."""

    def __init__(self, entities=()):
        self.values_by_key = {(one["partition"], one["row"]): one["values"] for one in entities}

    def _entity(self, key, values):
        return table.Entity(key=key, etag="version", last_modified=NOW, values=values)

    async def list(self, partition, columns, *, row_prefix=""):
        found = tuple(
            self._entity(
                table.Key(partition=p, row=row), {k: v for k, v in held.items() if k in columns}
            )
            for (p, row), held in self.values_by_key.items()
            if p == partition and row.startswith(row_prefix)
        )
        return table.Listing(entities=found, as_of=NOW)

    async def read(self, key):
        values = self.values_by_key.get((key.partition, key.row))
        return None if values is None else self._entity(key, values)

    async def write(self, write):
        await self.put(write.key, write.values)
        return Written(etag="version", last_modified=NOW)

    async def write_together(self, writes):
        return [await self.write(write) for write in writes]

    async def put(self, key, values):
        held = self.values_by_key.setdefault((key.partition, key.row), {})
        held |= values

    async def delete(self, key, *, etag):
        self.values_by_key.pop((key.partition, key.row), None)

    async def open(self):
        """Do nothing: there is no connection."""

    async def close(self):
        """Do nothing: there is no connection."""


@asynccontextmanager
async def table_store_over(entities):
    """Open a table store over a ``MemoryTable``."""
    store = TableCheckpointStore("https://golden.table.core.windows.net?sig=x", "golden")
    store._entities.vendor = entities
    async with store:
        yield store


async def test_golden_entities_are_written_again(monkeypatch):
    """Keys, names and types of properties, and their values."""
    monkeypatch.setattr(table_store, "new_name", names())
    memory = MemoryTable()
    async with table_store_over(memory) as store:
        await write_all(store)
        await store.update_checkpoint(GROUP, LARGE)
    entities = [
        {"partition": partition, "row": row, "values": values}
        for (partition, row), values in memory.values_by_key.items()
    ]

    check_written("tables.json", as_json(entities))


async def test_golden_entities_are_read():
    """With the values that were written, and the large state whole."""
    memory = MemoryTable(from_json(golden_text("tables.json")))
    async with table_store_over(memory) as store:
        found = await read_all(store)
    large = found["checkpoints"].pop("large")

    assert large.state == LARGE.state
    assert found == await written_records()


# --- SQLite --------------------------------------------------------------------------------------


class StoppedClock(HostClock):
    """A host clock that always shows the same time."""

    def wall_us(self):
        return int(NOW.timestamp()) * 1_000_000

    def elapsed_us(self):
        return 0

    def boot(self):
        return Boot(boot_id="boot", began_us=0)


def dump(path):
    """Return a file as statements that create it."""
    with closing(sqlite3.connect(path)) as db:
        pragmas = [
            f"PRAGMA {name}={db.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*pragmas, *db.iterdump(), ""])


async def test_a_golden_file_is_written_again(tmp_path, monkeypatch):
    """Tables, columns and rows, and what identifies the file."""
    monkeypatch.setattr(sqlite_records, "new_name", names())
    async with SqliteCheckpointStore(tmp_path / "group.db", _host_clock=StoppedClock()) as store:
        await write_all(store)

    check_written("sqlite.sql", dump(tmp_path / "group.db"))


async def test_a_golden_file_is_read(tmp_path):
    """With the values that were written."""
    with closing(sqlite3.connect(tmp_path / "group.db")) as db:
        db.executescript(golden_text("sqlite.sql"))
    async with SqliteCheckpointStore(tmp_path / "group.db") as store:
        assert await read_all(store) == await written_records()


# --- PostgreSQL ----------------------------------------------------------------------------------

TABLES = ("version", "ownership", "member", "checkpoint", "group_record")


@pytest.fixture(name="db")
def _db(postgres):
    """Yield a connection to a server where the schema ``golden`` does not exist."""
    with psycopg.connect(postgres.dsn, autocommit=True, row_factory=dict_row) as db:
        db.execute("DROP SCHEMA IF EXISTS golden CASCADE")
        yield db


def rows_of(db, name):
    """Return the rows of a table in the order of their writes, without their times."""
    order = "version" if name == "version" else "etag"
    found = db.execute(f"SELECT * FROM golden.{name} ORDER BY {order}").fetchall()
    return [{k: v for k, v in row.items() if k != "last_modified"} for row in found]


async def test_golden_rows_are_written_again(postgres, db, monkeypatch):
    """Tables, columns and values."""
    monkeypatch.setattr(postgres_store, "new_name", names())
    async with PostgresCheckpointStore(postgres.dsn, schema="golden", create_schema=True) as store:
        await write_all(store)

    check_written("postgres.json", as_json({name: rows_of(db, name) for name in TABLES}))


async def test_golden_rows_are_read(postgres, db):
    """With the values that were written."""
    async with PostgresCheckpointStore(postgres.dsn, schema="golden", create_schema=True) as store:
        for name, rows in from_json(golden_text("postgres.json")).items():
            db.execute(f"DELETE FROM golden.{name}")
            for row in rows:
                values = (
                    row if name in {"version", "group_record"} else row | {"last_modified": NOW}
                )
                marks = ", ".join(["%s"] * len(values))
                columns = ", ".join(f'"{column}"' for column in values)
                db.execute(
                    f"INSERT INTO golden.{name} ({columns}) VALUES ({marks})",
                    list(values.values()),
                )

        assert await read_all(store) == await written_records()
