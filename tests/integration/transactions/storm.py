"""Exactly once in a storm: processes are killed and frozen, the server is killed and restarted.

Five processes write a row for each event, in transactions. There is no unique index during the
storm, so that a second row of an event would be there; it is created at the end, and must fit. The
rows of each key have rising numbers in the order in which they were written.
"""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.ports import CheckpointStore
from tests.servers.postgres_server import PostgresServer

PARTITIONS: Final = 8
KEYS: Final = 64
PROCESSES: Final = 5
FREEZE_S: Final = (1.0, 9.0)
"""Around the ``ownership_expiration`` of the processes, 6 s."""

FAULT_EVERY_S: Final = 2.5
STALLED_AFTER_S: Final = 120.0

_UNIQUE: Final = "CREATE UNIQUE INDEX ledger_once ON ledger (partition_id, number)"

_COMPLETE: Final = """
SELECT partition_id, count(*), min(number), max(number) FROM ledger GROUP BY partition_id
"""
_OUT_OF_ORDER: Final = """
SELECT count(*) FROM (
    SELECT number - lag(number) OVER (PARTITION BY partition_id, key ORDER BY id) AS step
    FROM ledger
) AS steps WHERE step <= 0
"""


async def create(store: CheckpointStore) -> None:
    """Have a store create its tables."""
    async with store:
        pass


class Database(ABC):
    """The database of the rows and of the group."""

    store: str
    """The argument of the processes."""

    @abstractmethod
    def query(self, statement: str) -> Sequence[Any]:
        """Run a statement, and return its rows."""

    @abstractmethod
    def fault(self, rng: Random) -> str:
        """Inject a fault of the database; return its name, empty if it has none."""

    def close(self) -> None:  # noqa: B027 - a file needs none
        """Stop it."""


class PostgresDatabase(Database):
    """A real server, which is killed or restarted."""

    def __init__(self, _: Path) -> None:
        self._server = PostgresServer()
        self._server.start()
        self.store = self._server.dsn
        asyncio.run(create(PostgresCheckpointStore(self.store, create_schema=True)))
        self.query(
            "CREATE TABLE ledger (id bigint GENERATED ALWAYS AS IDENTITY, partition_id text, "
            "number bigint, key text, owner_id text)"
        )

    def query(self, statement: str) -> Sequence[Any]:
        with psycopg.connect(self.store, autocommit=True) as db:
            cursor = db.execute(statement.encode())
            return cursor.fetchall() if cursor.description else ()

    def fault(self, rng: Random) -> str:
        kind = rng.choice(("server killed", "server restarted", "connections cut"))
        if kind == "connections cut":
            self.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'eventproc'"
            )
            return kind
        (self._server.kill if kind == "server killed" else self._server.stop)()
        time.sleep(rng.uniform(0, 2))
        self._server.start()
        return kind

    def close(self) -> None:
        self._server.remove()


class SqliteDatabase(Database):
    """A file."""

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "store.db")
        asyncio.run(create(SqliteCheckpointStore(self.store)))
        self.query(
            "CREATE TABLE ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, partition_id TEXT, "
            "number INTEGER, key TEXT, owner_id TEXT)"
        )

    def query(self, statement: str) -> Sequence[Any]:
        db = sqlite3.connect(self.store, timeout=30, isolation_level=None)
        try:
            return db.execute(statement).fetchall()
        finally:
            db.close()

    def fault(self, rng: Random) -> str:
        return ""


@dataclass
class Storm:
    """The processes, and the faults that they are given."""

    database: Database
    address: str
    keys: int
    folder: Path
    rng: Random
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    thaw_at_s: dict[str, float] = field(default_factory=dict)
    started: int = 0

    def start(self) -> None:
        """Start a process."""
        owner_id = f"p{self.started}"
        self.started += 1
        worker = "tests.integration.transactions.storm_worker"
        with (self.folder / f"{owner_id}.log").open("wb") as log:
            self.processes[owner_id] = subprocess.Popen(
                [
                    *(sys.executable, "-m", worker, self.address, self.database.store),
                    *(owner_id, str(self.keys)),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def inject(self) -> None:
        """Inject one fault, and replace processes that have ended."""
        kind = self.rng.choice(("kill", "kill", "freeze", "freeze", "database"))
        awake = sorted(self.processes.keys() - self.thaw_at_s.keys())
        if kind == "database":
            kind = self.database.fault(self.rng) or "freeze"
        if kind == "kill" and awake:
            process = self.processes.pop(self.rng.choice(awake))
            process.kill()
            process.communicate()
        elif kind == "freeze" and awake:
            owner_id = self.rng.choice(awake)
            self.processes[owner_id].send_signal(signal.SIGSTOP)
            self.thaw_at_s[owner_id] = time.monotonic() + self.rng.uniform(*FREEZE_S)

    def tick(self) -> None:
        """Let processes continue whose time has come, and replace those that have ended."""
        for owner_id, at_s in list(self.thaw_at_s.items()):
            if time.monotonic() > at_s:
                self.processes[owner_id].send_signal(signal.SIGCONT)
                del self.thaw_at_s[owner_id]
        for owner_id, process in list(self.processes.items()):
            if process.poll() is not None:
                del self.processes[owner_id]
        while len(self.processes) < PROCESSES:
            self.start()

    def end(self) -> None:
        """Kill all processes."""
        for process in self.processes.values():
            process.kill()
            process.communicate()


def publish(address: str, count: int) -> None:
    """Publish so many events, the same number to each partition."""
    with EventHubProducerClient.from_connection_string(address) as producer:
        left = [count // PARTITIONS] * PARTITIONS
        while any(left):
            for partition in range(PARTITIONS):
                batch = producer.create_batch(partition_id=str(partition))
                for _ in range(min(2000, left[partition])):
                    event = EventData(b"x")
                    event.properties = {"key": f"k{left[partition] % KEYS}"}
                    batch.add(event)
                    left[partition] -= 1
                if len(batch):
                    producer.send_batch(batch)


def run_storm(
    database: Database,
    folder: Path,
    *,
    events: int,
    keys: int,
    rng: Random,
) -> list[str]:
    """Return what was wrong in the end: nothing, if each event has one row, in order."""
    with ExitStack() as stack:
        emulator = stack.enter_context(EventHubsEmulator({"hub": PARTITIONS}))
        address = emulator.connection_string_for("hub")
        publisher = threading.Thread(target=publish, args=(address, events))
        publisher.start()
        stack.callback(publisher.join)
        storm = Storm(database, address, keys, folder, rng)
        stack.callback(storm.end)
        count, counted_s = 0, time.monotonic()
        fault_at_s = time.monotonic() + 5
        while count < events:
            storm.tick()
            time.sleep(0.1)
            if time.monotonic() > fault_at_s:
                storm.inject()
                fault_at_s = time.monotonic() + FAULT_EVERY_S * rng.uniform(0.4, 1.6)
                [(now,)] = database.query("SELECT count(*) FROM ledger")
                if now > count:
                    count, counted_s = now, time.monotonic()
                if time.monotonic() - counted_s > STALLED_AFTER_S:
                    return [f"no new row in {STALLED_AFTER_S} s, {count} of {events}"]
        for owner_id in list(storm.thaw_at_s):
            storm.processes[owner_id].send_signal(signal.SIGCONT)
        time.sleep(3)  # What a process still has in mind would be written now.
        return violations(database, events)


def violations(database: Database, events: int) -> list[str]:
    """Ask the database whether each event has one row, and those of a key are in order."""
    found = []
    expected = {
        (str(p), events // PARTITIONS, 0, events // PARTITIONS - 1) for p in range(PARTITIONS)
    }
    seen = {tuple(row) for row in database.query(_COMPLETE)}
    found += [f"incomplete or too many: {row}" for row in sorted(seen - expected)]
    found += [f"missing: {row}" for row in sorted(expected - seen)]
    try:
        database.query(_UNIQUE)
    except (psycopg.Error, sqlite3.Error) as error:
        found.append(f"an event has two rows: {error}")
    [(count,)] = database.query(_OUT_OF_ORDER)
    if count:
        found.append(f"{count} rows are not in the order of their key")
    return found
