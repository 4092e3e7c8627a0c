"""The SQLite store: one error message for each thing that can be wrong with a path or file."""

import asyncio
import logging
import pickle
import sqlite3
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.sqlite._clock import HostClock, StoreClock
from checkpointstores.sqlite._file import OpenFile, connect, identity_of
from eventproc.errors import (
    ConfigurationError,
    StoreCorruptError,
    StoreError,
    StoreReplacedError,
    StoreUnavailableError,
)
from eventproc.models import (
    IN_PART,
    NOT_BEGUN,
    CheckpointUpdate,
    ConsumerGroup,
    Member,
    OwnershipClaim,
    WriteOutcome,
)

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
MEMBER = Member(owner_id="a", incarnation="1")


async def filled(path, *, records=1):
    """Make a store's file with some records, and close it."""
    async with SqliteCheckpointStore(path) as store:
        for number in range(records):
            await store.update_checkpoint(
                GROUP,
                CheckpointUpdate(
                    partition_id=str(number),
                    offset="1",
                    sequence_number=1,
                    replaces=None,
                    writer="w",
                    state=b"x" * 1000,
                ),
            )
        await store.claim_ownership(GROUP, [CLAIM])


def a_directory(path):
    """Make a directory at the path."""
    path.mkdir()


def a_text_file(path):
    """Make a text file at the path."""
    path.write_text("not a database, but as long as one\n" * 20)


def another_programs_database(path):
    """Make another program's database at the path."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()


def a_later_version(path):
    """Make a file as a later version of eventproc might."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 1702260850")
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (a_directory, "is a directory: give the path of a file in it"),
        (a_text_file, "is not an SQLite database"),
        (another_programs_database, "is a database of another program"),
        (a_later_version, "was written by another version of eventproc"),
    ],
)
async def test_a_path_that_cannot_work_is_refused_and_not_changed(tmp_path, prepare, message):
    """The message says what is there, and what to do."""
    path = tmp_path / "store.db"
    prepare(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ConfigurationError, match=message):
        await SqliteCheckpointStore(path).open()

    assert (path.read_bytes() if path.is_file() else None) == before
    assert sorted(tmp_path.iterdir()) == [path]


async def test_a_file_that_was_moved_without_its_wal_is_not_made_anew(tmp_path):
    """The group would begin without checkpoints, and the rest of the old file would be lost."""
    path, wal = tmp_path / "store.db", tmp_path / "store.db-wal"
    wal.write_bytes(b"the newest records")
    with pytest.raises(ConfigurationError, match=r"was deleted or moved, but not store\.db-wal"):
        await SqliteCheckpointStore(path).open()

    assert [*tmp_path.iterdir()] == [wal]

    wal.unlink()
    async with SqliteCheckpointStore(path):
        assert path.exists()


async def test_the_error_for_a_missing_directory_names_it(tmp_path):
    """SQLite would only say that it cannot open the file."""
    with pytest.raises(ConfigurationError, match=r"the directory .*/not-there does not exist"):
        await SqliteCheckpointStore(tmp_path / "not-there" / "store.db").open()


async def test_a_read_only_file_is_refused(tmp_path, monkeypatch):
    """SQLite opens it silently, and the first write would fail."""
    path = tmp_path / "store.db"
    await filled(path)
    connect = sqlite3.connect
    # File modes do not bind root, as which tests may run: so SQLite opens the file read-only.
    monkeypatch.setattr(
        sqlite3, "connect", lambda at, **how: connect(f"file:{at}?mode=ro", uri=True, **how)
    )

    with pytest.raises(ConfigurationError, match="cannot be opened for writing"):
        await SqliteCheckpointStore(path).open()


@pytest.mark.parametrize("change", ["deleted", "replaced", "directory moved"])
async def test_a_file_that_was_deleted_or_replaced_while_open_raises(tmp_path, change):
    """The system would let a process go on in a file that no other process can find."""
    folder = tmp_path / "group"
    folder.mkdir()
    path = folder / "store.db"
    await filled(tmp_path / "other.db")
    async with SqliteCheckpointStore(path) as store:
        if change == "deleted":
            path.unlink()
        elif change == "replaced":
            (tmp_path / "other.db").rename(path)
        else:
            folder.rename(tmp_path / "elsewhere")
        [claim] = await store.claim_ownership(GROUP, [CLAIM])
        with pytest.raises(StoreReplacedError, match="while this process had it open") as caught:
            await store.list_ownership(GROUP)

    assert isinstance(caught.value, StoreError)
    assert "Stop all processors" in str(caught.value)
    assert claim.outcome is WriteOutcome.UNKNOWN


async def test_a_relative_path_is_resolved_when_the_store_is_opened(tmp_path, monkeypatch):
    """A later change of the working directory does not matter."""
    monkeypatch.chdir(tmp_path)
    async with SqliteCheckpointStore("store.db") as store:
        monkeypatch.chdir(tmp_path.parent)
        [claim] = await store.claim_ownership(GROUP, [CLAIM])

    assert claim.outcome is WriteOutcome.WON


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_database_in_memory_is_refused(path):
    """Each process would have one of its own."""
    with pytest.raises(ConfigurationError, match="use MemoryCheckpointStore"):
        SqliteCheckpointStore(path)


def test_a_timeout_must_be_positive(tmp_path):
    """With 0, every collision would be an unknown outcome."""
    with pytest.raises(ConfigurationError, match="busy_timeout is 0 s: give more than 0 s"):
        SqliteCheckpointStore(tmp_path / "x.db", busy_timeout=timedelta(0))


def damage(path):
    """Overwrite all but the first page, which has the header and the names of tables."""
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)


async def test_a_damaged_file_is_refused_when_it_is_opened(tmp_path):
    """A processor that started with it would fail later."""
    path = tmp_path / "store.db"
    await filled(path, records=200)
    damage(path)

    with pytest.raises(ConfigurationError, match=r"is damaged .* restore a backup"):
        await SqliteCheckpointStore(path).open()


async def test_after_later_damage_reads_raise_and_writes_have_an_unknown_outcome(tmp_path, caplog):
    """The reason is logged once. Retries do not help."""
    path = tmp_path / "store.db"
    await filled(path, records=200)
    caplog.set_level(logging.INFO, "eventproc.stores.sqlite")
    async with SqliteCheckpointStore(path) as store:
        damage(path)
        with pytest.raises(StoreCorruptError, match="is damaged"):
            await store.read_checkpoint(GROUP, "7")
        known = [c for c in await store.list_checkpoints(GROUP) if c.partition_id == "7"]
        update = replace(an_update("7", IN_PART), replaces=known[0], state=b"y" * 1000)
        results = [await store.update_checkpoint(GROUP, update) for _ in range(3)]

    logged = [r for r in caplog.records if getattr(r, "event", "") == "store_write_unknown"]
    assert {result.outcome for result in results} == {WriteOutcome.UNKNOWN}
    assert [r.levelname for r in logged] == ["ERROR"]
    assert "restore a backup" in logged[0].__dict__["error"]


def hold_the_lock(path):
    """Begin a write as another process does, and leave it unfinished."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


async def test_a_write_of_unknown_outcome_reports_why(tmp_path):
    """Also each of several that shared a transaction. Afterwards writes are won again."""
    path = tmp_path / "store.db"
    async with SqliteCheckpointStore(path, busy_timeout=timedelta(milliseconds=1)) as store:
        other = hold_the_lock(path)
        member = Member(owner_id="a", incarnation="1")
        claims, announced, updated, withdrawn = await asyncio.gather(
            store.claim_ownership(GROUP, [CLAIM, replace(CLAIM, partition_id="1")]),
            store.announce_member(GROUP, member),
            store.update_checkpoint(GROUP, an_update("0")),
            store.withdraw_member(GROUP, member),
        )
        other.close()
        [again] = await store.claim_ownership(GROUP, [CLAIM])

    results: list[Any] = [*claims, announced, updated]
    assert [result.claim.partition_id for result in claims] == ["0", "1"]
    assert {result.outcome for result in results} == {WriteOutcome.UNKNOWN}
    for result in results:
        assert isinstance(result.error, StoreUnavailableError)
        assert "database is locked" in str(result.error)
    assert withdrawn is WriteOutcome.UNKNOWN
    assert (again.outcome, again.error) == (WriteOutcome.WON, None)


async def test_a_write_failure_is_logged_when_it_begins_gets_worse_and_ends(tmp_path, caplog):
    """A locked file may become free; a file that was moved away needs an operator."""
    path = tmp_path / "store.db"
    caplog.set_level(logging.INFO, "eventproc.stores.sqlite")
    async with SqliteCheckpointStore(path, busy_timeout=timedelta(milliseconds=1)) as store:
        caplog.clear()
        other = hold_the_lock(path)
        for _ in range(2):
            await store.claim_ownership(GROUP, [CLAIM])
        other.close()
        path.rename(tmp_path / "elsewhere.db")
        for _ in range(2):
            await store.claim_ownership(GROUP, [CLAIM])
        (tmp_path / "elsewhere.db").rename(path)
        for _ in range(2):
            await store.claim_ownership(GROUP, [CLAIM])

    assert [(r.levelname, r.__dict__["event"]) for r in caplog.records] == [
        ("WARNING", "store_write_unknown"),
        ("ERROR", "store_write_unknown"),
        ("INFO", "store_write_known_again"),
    ]
    assert {r.__dict__["path"] for r in caplog.records} == {str(path)}


async def test_records_survive_closing(tmp_path):
    """All are in one file. Opening and closing twice does nothing."""
    path = tmp_path / "store.db"
    await filled(path)
    store = SqliteCheckpointStore(path)
    await store.open()
    await store.open()
    snapshot = await store.list_ownership(GROUP)
    await store.close()
    await store.close()

    assert [record.owner_id for record in snapshot.ownerships] == ["a"]
    assert list(tmp_path.iterdir()) == [path]


async def test_a_store_that_is_not_open_can_be_pickled(tmp_path):
    """For other processes, which open it themselves."""
    copy = pickle.loads(pickle.dumps(SqliteCheckpointStore(tmp_path / "store.db")))
    async with copy:
        [result] = await copy.claim_ownership(GROUP, [CLAIM])

    assert result.outcome is WriteOutcome.WON


async def test_a_closed_store_raises(tmp_path):
    """``RuntimeError``, and not one that would be retried."""
    store = SqliteCheckpointStore(tmp_path / "store.db")
    with pytest.raises(RuntimeError, match="the store is not open") as caught:
        await store.list_ownership(GROUP)

    assert not isinstance(caught.value, StoreError)


def an_update(partition_id, isolation=NOT_BEGUN):
    """A first checkpoint of this partition."""
    return CheckpointUpdate(
        partition_id=partition_id,
        offset="1",
        sequence_number=1,
        replaces=None,
        writer="w",
        isolation=isolation,
    )


def test_an_error_in_a_file_that_was_replaced_is_that_of_the_replacement(tmp_path):
    """SQLite's own error would send an operator to a file that is in order."""
    path = tmp_path / "store.db"
    connection = connect(path, busy_timeout_s=1)
    opened = OpenFile(
        connection=connection,
        path=path,
        identity=identity_of(path),
        clock=StoreClock(HostClock()),
    )
    path.rename(tmp_path / "moved.db")
    with pytest.raises(StoreReplacedError), opened.transaction("BEGIN") as db:
        db.execute("SELECT * FROM no_such_table")
    connection.close()


async def test_a_value_that_sqlite_cannot_store_fails_only_its_own_write(tmp_path):
    """A number of more than 64 bits, or half of a surrogate pair, beside other writes.

    These share a transaction, but each has an outcome of its own.
    """
    pair = [CLAIM, replace(CLAIM, partition_id="1", owner_id="\ud83d")]
    async with SqliteCheckpointStore(tmp_path / "store.db") as store:
        assert store._thread is not None
        is_released = threading.Event()
        store._thread.submit(is_released.wait, 20)  # Until all writes are queued.
        writes = asyncio.gather(
            store.update_checkpoint(GROUP, an_update("0")),
            store.announce_member(GROUP, Member(owner_id="a", incarnation="1", capacity=2**63)),
            store.claim_ownership(GROUP, pair),
            store.update_checkpoint(GROUP, an_update("2")),
            return_exceptions=True,
        )
        await asyncio.sleep(0)
        is_released.set()
        results = await writes
        listed = await store.list_checkpoints(GROUP)
        held = await store.list_ownership(GROUP)

    assert isinstance(results[1], OverflowError)
    assert isinstance(results[2], UnicodeEncodeError)
    assert [getattr(results[n], "outcome", None) for n in (0, 3)] == [WriteOutcome.WON] * 2
    assert {checkpoint.partition_id for checkpoint in listed} == {"0", "2"}
    assert held.ownerships == ()


async def test_a_cancelled_write_does_not_affect_concurrent_writes(tmp_path):
    """It may take effect or not; the others return their own outcomes."""
    async with SqliteCheckpointStore(tmp_path / "store.db") as store:
        calls = [
            asyncio.ensure_future(store.update_checkpoint(GROUP, an_update(str(number))))
            for number in range(20)
        ]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        results = await asyncio.gather(*calls, return_exceptions=True)
        listed = {checkpoint.partition_id for checkpoint in await store.list_checkpoints(GROUP)}

    assert {getattr(result, "outcome", None) for result in results[1::2]} == {WriteOutcome.WON}
    assert listed >= {str(number) for number in range(1, 20, 2)}


async def test_a_store_whose_opening_failed_can_be_opened_later(tmp_path):
    """For example after the directory was made. Until then it counts as not open."""
    folder = tmp_path / "later"
    store = SqliteCheckpointStore(folder / "store.db")
    with pytest.raises(ConfigurationError, match="does not exist"):
        await store.open()
    with pytest.raises(RuntimeError, match="the store is not open"):
        await store.list_ownership(GROUP)
    folder.mkdir()
    async with store:
        [claim] = await store.claim_ownership(GROUP, [CLAIM])

    assert claim.outcome is WriteOutcome.WON


async def test_no_claims_need_no_write(tmp_path):
    """So they have no unknown outcome either while another process has the file locked."""
    path = tmp_path / "store.db"
    async with SqliteCheckpointStore(path, busy_timeout=timedelta(milliseconds=1)) as store:
        other = hold_the_lock(path)
        results = await store.claim_ownership(GROUP, [])
        [after] = await store.claim_ownership(GROUP, [CLAIM])
        other.close()

    assert results == []
    assert after.outcome is WriteOutcome.UNKNOWN


async def test_a_close_that_was_cut_off_leaves_the_file_of_the_next_open(tmp_path):
    """Its thread was busy, and closes only its own file."""
    store = SqliteCheckpointStore(tmp_path / "store.db")
    await store.open()
    busy, thread = threading.Event(), store._thread
    assert thread is not None
    thread.submit(busy.wait)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await store.close()
    await store.open()
    busy.set()
    await asyncio.to_thread(thread.shutdown)
    await store.announce_member(GROUP, MEMBER)
    found = await store.list_members(GROUP)
    await store.close()

    assert [member.owner_id for member in found.members] == [MEMBER.owner_id]


async def test_a_write_to_a_closed_store_is_not_made_later(tmp_path):
    """After the next open it would be a surprise."""
    store = SqliteCheckpointStore(tmp_path / "store.db")
    with pytest.raises(RuntimeError, match="not open"):
        await store.announce_member(GROUP, MEMBER)
    async with store:
        await store.announce_member(GROUP, replace(MEMBER, owner_id="b"))
        found = await store.list_members(GROUP)

    assert [member.owner_id for member in found.members] == ["b"]
