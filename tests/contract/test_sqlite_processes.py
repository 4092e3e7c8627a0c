"""SQLite with real processes: races, locks, and a process that dies while it writes."""

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
from checkpointstores.sqlite.file import connect
from eventproc.errors import StoreUnavailableError
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim, WriteOutcome

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
PROCESSES = 4
ROUNDS = 40


def race(path, name, barrier, results):
    """One of several processes: open at the same moment, then claim the same records."""

    async def claim_all():
        won = []
        barrier.wait(timeout=30)
        async with SqliteCheckpointStore(path) as store:
            for number in range(ROUNDS):
                barrier.wait(timeout=10)
                claim = OwnershipClaim(partition_id=str(number), owner_id=name, expected_etag=None)
                [result] = await store.claim_ownership(GROUP, [claim])
                won.append(result.outcome.value)
        results.put((name, won))

    asyncio.run(claim_all())


def test_of_many_processes_one_wins(tmp_path):
    """Processes that create one file together and race on it: one winner for each record."""
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


def test_many_may_create_the_file_at_once(tmp_path):
    """Whoever comes while another makes the tables waits for it, and never misreads the half."""

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


def test_what_was_won_survives_a_kill(tmp_path):
    """A process killed in mid-write loses nothing it was told, and state fits position."""
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    told = -1

    async def stored():
        async with SqliteCheckpointStore(path) as store:
            return await store.read_checkpoint(GROUP, "0")

    for kill in range(5):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(20 + kill)]
            os.kill(writer.pid, signal.SIGKILL)
            lines += writer.stdout.readlines()
        told = int(next(line for line in reversed(lines) if line.endswith("\n")))
        checkpoint = asyncio.run(stored())

        assert checkpoint.sequence_number in {told, told + 1}
        assert checkpoint.state == str(checkpoint.sequence_number).encode() * 500

    assert told >= 5 * 20 - 1


@pytest.fixture
def locked(tmp_path):
    """A store's file, and another process's connection that may lock it."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path, isolation_level=None)
    yield path, connection
    connection.close()


async def test_a_locked_file_makes_writes_unknown_and_lets_reads_go_on(locked):
    """Somebody else's long transaction: not lost, not won, and readers need not wait."""
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


async def test_opening_waits_for_a_lock_and_then_gives_up(locked):
    """Locked for longer than the timeout is unavailable, not misconfigured."""
    path, other = locked
    other.execute("BEGIN EXCLUSIVE")
    store = SqliteCheckpointStore(path, busy_timeout=timedelta(milliseconds=50))
    with pytest.raises(StoreUnavailableError, match="database is locked"):
        await store.open()
    other.execute("ROLLBACK")
    await store.open()
    await store.close()


async def test_the_event_loop_does_not_wait_for_a_lock(locked):
    """While a write waits for another process, everything else in this one goes on."""
    path, other = locked
    async with SqliteCheckpointStore(path, busy_timeout=timedelta(milliseconds=300)) as store:
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
    assert took < 0.25
    assert result.outcome is WriteOutcome.WON


LOOKER = """
    import sys, time

    off_s = float(sys.argv[2])
    wall, wall_ns = time.time, time.time_ns
    time.time = lambda: wall() + off_s
    time.time_ns = lambda: wall_ns() + int(off_s * 1e9)

    import asyncio
    from checkpointstores.sqlite import SqliteCheckpointStore
    from eventproc.models import ConsumerGroup

    async def look():
        group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
        async with SqliteCheckpointStore(sys.argv[1]) as store:
            seen = await store.list_ownership(group)
        print((seen.as_of - seen.ownerships[0].last_modified).total_seconds())

    asyncio.run(look())
"""
"""A process whose wall clock is off, as Python sees it."""


@pytest.mark.parametrize("off_s", [-3600, 600])
async def test_a_process_whose_wall_clock_is_off_sees_how_old_a_record_is(tmp_path, off_s):
    """Or it would take what is owned: ten minutes are more than any expiration."""
    path = tmp_path / "store.db"
    async with SqliteCheckpointStore(path) as store:
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
        await store.claim_ownership(GROUP, [claim])
        looker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(LOOKER),
            str(path),
            str(off_s),
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await looker.communicate()

    assert 0 <= float(told) < 120
