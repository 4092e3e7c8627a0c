"""Stored formats stay, in an Azure table and in PostgreSQL: entities and rows as on the first day.

``golden/tables.json`` and ``golden/postgres.json`` were written by the version that these stores
came with, from the values of ``golden/values.json`` and from ``EXTRA``. A change that fails here
breaks groups with processors of two versions.
"""

import json
from dataclasses import asdict
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.postgres import store as postgres_store
from checkpointstores.tables import records as table_records
from checkpointstores.tables.contents import INLINE_MAX
from checkpointstores.tables.records import TableRecords
from checkpointstores.tables.table import Entity, Key, Listing, Written
from eventproc.models import CheckpointUpdate, GroupRecord, Member, OwnershipClaim, SequenceRange
from tests.contract.golden_values import GOLDEN, GROUP, NOW, check_all_is_read, write_all

LARGE = b"x" * (INLINE_MAX + 1)
"""A state that a table stores in parts."""

EXTRA: dict[str, Any] = {
    "claim": OwnershipClaim(partition_id="e1", owner_id=None, expected_etag=None, epoch=7),
    "member": Member(
        owner_id="other",
        incarnation="i",
        capacity=3,
        ordinal=0,
        weight=2.5,
        placement="ByLoad",
        load='{"0": 2}',
    ),
    "checkpoint": CheckpointUpdate(
        partition_id="e1",
        offset="abc",
        sequence_number=5,
        writer="w",
        state=LARGE,
        completed=(SequenceRange(7, 8), SequenceRange(10, 10)),
        delivery_count=2,
        replaces=None,
    ),
    "record": GroupRecord(name="schema", content=b"{}"),
}
"""What the values do not have."""


class MemoryTable:
    """A table in this process, which ignores the conditions of writes."""

    def __init__(self, entities=()):
        self._versions = count(1)
        self.values_by_key = {(key.partition, key.row): values for key, values in entities}

    def _entity(self, key, values):
        return Entity(key=key, etag="version", last_modified=NOW, values=values)

    async def list(self, partition, columns, *, row_prefix=""):
        found = tuple(
            self._entity(Key(partition=p, row=row), {k: v for k, v in held.items() if k in columns})
            for (p, row), held in self.values_by_key.items()
            if p == partition and row.startswith(row_prefix)
        )
        return Listing(entities=found, as_of=NOW)

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


class TableStore(TableRecords):
    """The table store over a ``MemoryTable``."""

    def __init__(self, table):
        super().__init__("golden", concurrency_max=1)
        self._attach(table)

    async def open(self):
        """Do nothing: the store is attached to its table from the start."""

    async def close(self):
        """Do nothing: there is no connection."""


def names():
    """Return a function that returns the names of writes in turn."""
    numbers = count(1)
    return lambda: f"{next(numbers):016x}"


async def write_extra(store):
    """Write what the values do not have."""
    await store.claim_ownership(GROUP, [EXTRA["claim"]])
    await store.announce_member(GROUP, EXTRA["member"])
    await store.update_checkpoint(GROUP, EXTRA["checkpoint"])
    await store.write_record(GROUP, EXTRA["record"])


async def check_extra_is_read(store):
    """Assert that the store has it."""
    owned = (await store.list_ownership(GROUP)).by_partition["e1"]
    listed = await store.list_members(GROUP)
    [member] = [m for m in listed.members if m.owner_id == "other"]
    checkpoint = await store.read_checkpoint(GROUP, "e1")
    record = await store.read_record(GROUP, "schema")
    update = EXTRA["checkpoint"]

    assert (owned.owner_id, owned.epoch) == (None, 7)
    assert {**asdict(member), "etag": None, "last_modified": None} == asdict(EXTRA["member"])
    assert (checkpoint.state, checkpoint.completed) == (LARGE, update.completed)
    assert (checkpoint.offset, checkpoint.writer) == (update.offset, update.writer)
    assert (checkpoint.delivery_count, record.content) == (2, b"{}")
    assert set(listed.record_etags) == {"schema"}


def as_json(values):
    """Return values with bytes as hexadecimal digits, and their count if all are equal."""
    return {name: digits(v) if isinstance(v, bytes) else v for name, v in values.items()}


def digits(value):
    """Return the digits of bytes, and their count if all are equal."""
    is_even = len(value) > 1 and len(set(value)) == 1
    return {"hex": value[:1].hex(), "count": len(value)} if is_even else {"hex": value.hex()}


def from_json(values):
    """The reverse of ``as_json``."""
    return {
        name: bytes.fromhex(v["hex"]) * v.get("count", 1) if isinstance(v, dict) else v
        for name, v in values.items()
    }


def golden(name):
    """Return what a golden file has."""
    return json.loads((GOLDEN / name).read_text("utf-8"))


# --- tables --------------------------------------------------------------------------------------


async def test_golden_entities_are_read():
    """With the values that they were written from."""
    table = MemoryTable(
        (Key(partition=one["partition"], row=one["row"]), from_json(one["values"]))
        for one in golden("tables.json")
    )
    store = TableStore(table)
    await check_extra_is_read(store)
    for key in [key for key, values in table.values_by_key.items() if is_extra(values)]:
        del table.values_by_key[key]
    await check_all_is_read(store)


def is_extra(values):
    """Whether an entity is of ``EXTRA``."""
    return values.get("partition_id") == "e1" or values.get("owner_id") == "other"


async def test_golden_entities_are_written_again(monkeypatch):
    """Keys, names and types of properties, and their values."""
    monkeypatch.setattr(table_records, "new_write_id", names())
    table = MemoryTable()
    store = TableStore(table)
    await write_all(store)
    await write_extra(store)
    found = [
        {"partition": partition, "row": row, "values": as_json(values)}
        for (partition, row), values in table.values_by_key.items()
    ]

    assert found == golden("tables.json")


# --- PostgreSQL ----------------------------------------------------------------------------------

TABLES = ("checkpoint", "group_record", "member", "ownership")


@pytest.fixture(name="db")
def _db(postgres):
    """Yield a connection to a server where the schema ``golden`` does not exist."""
    with psycopg.connect(postgres.dsn, autocommit=True, row_factory=dict_row) as db:
        db.execute("DROP SCHEMA IF EXISTS golden CASCADE")
        yield db


def rows_of(db, table):
    """Return the rows of a table, in the order of their etags, without their times."""
    found = db.execute(f"SELECT * FROM golden.{table} ORDER BY etag")
    return [{k: v for k, v in as_json(row).items() if k != "last_modified"} for row in found]


async def test_golden_rows_are_written_again(postgres, db, monkeypatch):
    """Tables, columns and values."""
    monkeypatch.setattr(postgres_store, "new_etag", names())
    async with PostgresCheckpointStore(postgres.dsn, schema="golden", create_schema=True) as store:
        await write_all(store)
        await write_extra(store)

    assert {table: rows_of(db, table) for table in TABLES} == golden("postgres.json")


async def test_golden_rows_are_read(postgres, db):
    """With the values that they were written from."""
    async with PostgresCheckpointStore(postgres.dsn, schema="golden", create_schema=True) as store:
        for table, rows in golden("postgres.json").items():
            for row in rows:
                dated = {} if table == "group_record" else {"last_modified": NOW}
                values = from_json(row) | dated
                marks = ", ".join(["%s"] * len(values))
                columns = ", ".join(f'"{name}"' for name in values)
                db.execute(
                    f"INSERT INTO golden.{table} ({columns}) VALUES ({marks})",
                    list(values.values()),
                )
        await check_extra_is_read(store)
        db.execute("DELETE FROM golden.checkpoint WHERE partition_id = 'e1'")
        db.execute("DELETE FROM golden.ownership WHERE partition_id = 'e1'")
        db.execute("DELETE FROM golden.member WHERE owner_id = 'other'")
        await check_all_is_read(store)
