"""SQLite with several processes: races, locks, and a process that is killed while it writes."""

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.sqlite._file import connect
from eventproc.errors import StoreUnavailableError
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim, WriteOutcome

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
PROCESSES = 4
ROUNDS = 40


def race(path, name, barrier, results):
    """Run in each of several processes: open the store at one moment, then claim the same
    records."""

    async def claim_all():
        won = []
        barrier.wait(timeout=30)
        async with SqliteCheckpointStore(path) as store:
            for number in range(ROUNDS):
                barrier.wait(timeout=60)
                claim = OwnershipClaim(partition_id=str(number), owner_id=name, expected_etag=None)
                [result] = await store.claim_ownership(GROUP, [claim])
                won.append(result.outcome.value)
        results.put((name, won))

    asyncio.run(claim_all())


def test_processes_that_race_for_a_record_have_one_winner(tmp_path):
    """Processes create one file together and claim the same records: each record has one winner."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(PROCESSES), context.Queue()
    path = tmp_path / "store.db"
    processes = [
        context.Process(target=race, args=(path, f"p{number}", barrier, results), daemon=True)
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    outcomes = dict(results.get(timeout=40) for _ in processes)
    for process in processes:
        process.join()
    wins = [
        [name for name, won in outcomes.items() if won[number] == "won"] for number in range(ROUNDS)
    ]

    async def owners():
        async with SqliteCheckpointStore(path) as store:
            return {
                r.partition_id: r.owner_id for r in (await store.list_ownership(GROUP)).ownerships
            }

    assert [len(winners) for winners in wins] == [1] * ROUNDS
    assert {outcome for won in outcomes.values() for outcome in won} == {"won", "lost"}
    assert asyncio.run(owners()) == {str(n): winners[0] for n, winners in enumerate(wins)}


def test_connections_that_create_a_file_at_once_all_find_its_tables(tmp_path):
    """A connection waits while another creates the tables, and never sees only some of them."""

    def open_one(path):
        with closing(connect(path, busy_timeout_s=10)) as connection:
            return connection.execute("SELECT count(*) FROM ownership").fetchone()

    with ThreadPoolExecutor(6) as threads:
        for number in range(60):
            path = tmp_path / f"{number}.db"
            counts = list(threads.map(open_one, [path] * 6))

            assert counts == [(0,)] * 6


WRITER = """
    import asyncio, sys
    from checkpointstores.sqlite import SqliteCheckpointStore
    from eventproc.models import CheckpointUpdate, ConsumerGroup

    async def write():
        group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
        async with SqliteCheckpointStore(sys.argv[1]) as store:
            checkpoint = await store.read_checkpoint(group, "0")
            number = checkpoint.sequence_number + 1 if checkpoint else 0
            while True:
                result = await store.update_checkpoint(group, CheckpointUpdate(
                    partition_id="0", offset=str(number), sequence_number=number,
                    replaces=checkpoint, writer="w", state=str(number).encode() * 500))
                checkpoint = result.checkpoint
                print(number, flush=True)
                number += 1

    asyncio.run(write())
"""


def test_a_won_write_survives_a_kill_of_its_process(tmp_path):
    """After SIGKILL the last acknowledged checkpoint, or the one after it, is stored with its own
    state."""
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    acknowledged = -1

    async def stored():
        async with SqliteCheckpointStore(path) as store:
            return await store.read_checkpoint(GROUP, "0")

    for kill in range(5):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(20 + kill)]
            os.kill(writer.pid, signal.SIGKILL)
            lines += writer.stdout.readlines()
        acknowledged = int(next(line for line in reversed(lines) if line.endswith("\n")))
        checkpoint = asyncio.run(stored())

        assert checkpoint.sequence_number in {acknowledged, acknowledged + 1}
        assert checkpoint.state == str(checkpoint.sequence_number).encode() * 500

    assert acknowledged >= 5 * 20 - 1


@pytest.fixture
def locked(tmp_path):
    """Yield a store's file, and another connection that may lock it."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path, isolation_level=None)
    yield path, connection
    connection.close()


async def test_a_locked_file_makes_writes_unknown_and_does_not_delay_reads(locked):
    """While another connection holds the write lock, writes are ``UNKNOWN`` after
    ``busy_timeout``."""
    path, other = locked
    async with SqliteCheckpointStore(path, busy_timeout=timedelta(milliseconds=50)) as store:
        other.execute("BEGIN IMMEDIATE")
        [claim] = await store.claim_ownership(
            GROUP, [OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)]
        )
        update = await store.update_checkpoint(
            GROUP,
            CheckpointUpdate(
                partition_id="0", offset="1", sequence_number=1, replaces=None, writer="w"
            ),
        )
        membership = await store.announce_member(GROUP, Member(owner_id="a", incarnation="1"))
        withdrawal = await store.withdraw_member(GROUP, Member(owner_id="a", incarnation="1"))
        empty = await store.list_ownership(GROUP)
        other.execute("ROLLBACK")
        [again] = await store.claim_ownership(GROUP, [claim.claim])

    assert {claim.outcome, update.outcome, membership.outcome, withdrawal} == {WriteOutcome.UNKNOWN}
    assert empty.ownerships == ()
    assert again.outcome is WriteOutcome.WON


async def test_opening_a_file_locked_beyond_the_timeout_is_unavailable(locked):
    """``open`` raises ``StoreUnavailableError``, and succeeds once the lock is gone."""
    path, other = locked
    other.execute("BEGIN EXCLUSIVE")
    store = SqliteCheckpointStore(path, busy_timeout=timedelta(milliseconds=50))
    with pytest.raises(StoreUnavailableError, match="database is locked"):
        await store.open()
    other.execute("ROLLBACK")
    await store.open()
    await store.close()


async def test_a_write_that_waits_for_a_lock_does_not_block_the_event_loop(locked):
    """Other tasks go on while the write waits, and it wins when the lock is released."""
    path, other = locked
    async with SqliteCheckpointStore(path, busy_timeout=timedelta(seconds=30)) as store:
        other.execute("BEGIN IMMEDIATE")
        began = time.perf_counter()
        claim = asyncio.ensure_future(
            store.claim_ownership(
                GROUP, [OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)]
            )
        )
        await asyncio.sleep(0.01)
        took = time.perf_counter() - began
        is_waiting = not claim.done()
        other.execute("ROLLBACK")
        [result] = await claim

    assert is_waiting
    assert took < 10
    assert result.outcome is WriteOutcome.WON


READER = """
    import sys, time

    off_s = float(sys.argv[2])
    wall, wall_ns = time.time, time.time_ns
    time.time = lambda: wall() + off_s
    time.time_ns = lambda: wall_ns() + int(off_s * 1e9)

    import asyncio
    from checkpointstores.sqlite import SqliteCheckpointStore
    from eventproc.models import ConsumerGroup

    async def read():
        group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
        async with SqliteCheckpointStore(sys.argv[1]) as store:
            snapshot = await store.list_ownership(group)
        print((snapshot.as_of - snapshot.ownerships[0].last_modified).total_seconds())

    asyncio.run(read())
"""
"""Prints the age of a record, in a process whose wall clock is off by some seconds."""


@pytest.mark.parametrize("off_s", [-3600, 600])
async def test_the_age_of_a_record_does_not_depend_on_the_readers_wall_clock(tmp_path, off_s):
    """A clock that is off by more than the expiration does not make a live record look expired."""
    path = tmp_path / "store.db"
    async with SqliteCheckpointStore(path) as store:
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
        await store.claim_ownership(GROUP, [claim])
        reader = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(READER),
            str(path),
            str(off_s),
            stdout=asyncio.subprocess.PIPE,
        )
        acknowledged, _ = await reader.communicate()

    assert 0 <= float(acknowledged) < 120
