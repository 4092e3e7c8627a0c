"""Clauses on group records: conditional writes, one record for each name, any bytes.

Relied on by: eventproc/_group/records.py
"""

from dataclasses import replace

from eventproc.models import ConsumerGroup, GroupRecord
from eventproc.ports import CheckpointStore
from eventproc.testing._clauses import require
from eventproc.testing._store_contract.bench import (
    Bench,
    owners,
    require_lost,
    require_present,
    require_won,
)
from eventproc.testing._store_contract.members import members
from eventproc.testing._store_contract.ownership import UNUSUAL_OWNER_IDS

LARGE = bytes(range(256)) * 4096
"""A mebibyte with each value of a byte."""


async def write(store: CheckpointStore, group: ConsumerGroup, record: GroupRecord) -> GroupRecord:
    """Write a group record that must win, and return it as stored."""
    result = await store.write_record(group, record)
    require_won(result.outcome, "a write on the etag that is stored must be won", result.error)
    stored = require_present(result.record, "a won write must come with the record")
    require(
        stored.etag not in {None, record.etag} and replace(stored, etag=record.etag) == record,
        f"a won write must return what was written, with a new etag: {stored} for {record}",
    )
    return stored


async def group_record_comes_back(bench: Bench) -> None:
    """A group record is read by every store as it was written, and is in no other listing."""
    group = bench.new_group()
    require(await bench.store.read_record(group, "plan") is None, "a new group has no records")
    for content in (b"", b"\x00\xff{}", LARGE):
        name = f"of {len(content)} bytes"
        written = await write(bench.store, group, GroupRecord(name=name, content=content))
        require(
            await bench.other.read_record(group, name) == written,
            "a group record must be read exactly as it was stored",
        )
    require(await owners(bench.store, group) == {}, "a group record must not look like an owner")
    require(await members(bench.store, group) == set(), "nor like a member")
    require(list(await bench.store.list_checkpoints(group)) == [], "nor like a checkpoint")


async def a_listing_of_members_has_the_etags_of_group_records(bench: Bench) -> None:
    """A processor compares them at each poll, and reads only the records that changed."""
    group = bench.new_group()
    require(
        dict((await bench.store.list_members(group)).record_etags) == {}, "a new group has none"
    )
    first = await write(bench.store, group, GroupRecord(name="plan", content=b"1"))
    other = await write(bench.store, group, GroupRecord(name="a/b \u00e4", content=b"1"))
    second = await write(bench.other, group, replace(first, content=b"2"))
    await write(bench.store, bench.new_group(), GroupRecord(name="elsewhere", content=b""))
    listed = await bench.store.list_members(group)
    require(
        dict(listed.record_etags) == {"plan": second.etag, other.name: other.etag},
        f"a listing of members must have the newest etag of each group record: {listed}",
    )


async def writing_a_group_record_is_conditional(bench: Bench) -> None:
    """A write without an etag, or on an outdated one, is lost if there is a record."""
    group = bench.new_group()
    first = await write(bench.store, group, GroupRecord(name="plan", content=b"1"))
    second = await write(bench.other, group, replace(first, content=b"2"))
    for outdated in (None, first.etag):
        result = await bench.store.write_record(group, replace(first, etag=outdated))
        require_lost(result.outcome, "a write on an outdated etag must be lost")
    result = await bench.store.write_record(group, replace(second, name="another"))
    require_lost(result.outcome, "a write that replaces a missing record must be lost")
    require(await bench.store.read_record(group, "plan") == second, "a lost write changes nothing")
    again = await write(bench.store, group, second)
    require(again.etag != first.etag, "a write must not repeat an earlier etag")


async def group_records_are_distinguished(bench: Bench) -> None:
    """Each name is one record, whatever its characters, and belongs to one group."""
    group = bench.new_group("$Default")
    neighbour = replace(group, name="$Default1")
    names = (*UNUSUAL_OWNER_IDS, "a/b", "a/../b", ".")
    written = [
        await write(bench.store, where, GroupRecord(name=name, content=name.encode()))
        for where in (group, neighbour)
        for name in names
    ]
    read = [
        await bench.other.read_record(where, name)
        for where in (replace(group, name="$DEFAULT"), neighbour)
        for name in names
    ]
    require(read == written, "each record must be found under its own name and group")
