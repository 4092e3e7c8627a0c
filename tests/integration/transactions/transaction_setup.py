"""One group whose handlers write rows in transactions, in PostgreSQL and in SQLite."""

import asyncio
import sqlite3
import uuid
from abc import ABC, abstractmethod
from datetime import timedelta

import psycopg

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    BlockingPartitionHandler,
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionHandler,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub

CONFIG = EventProcessorConfig(
    initial_position=EventPosition.earliest(),
    load_balancing_interval=timedelta(seconds=0.5),
    rebalance_interval=timedelta(seconds=0.1),
)


class Database(ABC):
    """A table of rows, and the store in the same database."""

    insert: str
    """The statement that writes a row: partition, sequence number, key."""

    @abstractmethod
    def store(self, port=0):
        """Return an unopened store."""

    @abstractmethod
    def query(self, statement):
        """Return the rows of a statement."""

    def rows(self):
        """Return partition and number of each row, in order."""
        return self.query("SELECT partition_id, number FROM ledger ORDER BY 1, 2")

    async def until(self, count):
        """Return when there are so many rows."""
        while len(await asyncio.to_thread(self.rows)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class Postgres(Database):
    """On a real server, in a schema of its own."""

    def __init__(self, server):
        self.server = server
        self.schema = f"s{uuid.uuid4().hex}"
        self.insert = f"INSERT INTO {self.schema}.ledger VALUES (%s, %s, %s)"
        with psycopg.connect(server.dsn, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {self.schema}")
            db.execute(
                f"CREATE TABLE {self.schema}.ledger "
                "(partition_id text, number bigint, key text, PRIMARY KEY (partition_id, number))"
            )

    def store(self, port=0):
        """Return a store in the schema of the table."""
        return PostgresCheckpointStore(
            self.server.dsn_through(port or self.server.port),
            schema=self.schema,
            create_schema=True,
        )

    def query(self, statement):
        """Return the rows of a statement about tables of the schema."""
        with psycopg.connect(self.server.dsn, autocommit=True) as db:
            db.execute(f"SET search_path TO {self.schema}")
            return db.execute(statement).fetchall()


class Sqlite(Database):
    """In a file of its own."""

    insert = "INSERT INTO ledger VALUES (?, ?, ?)"

    def __init__(self, path):
        self.path = path
        # The store refuses a file of another program, so it creates it.
        asyncio.run(self._create())
        with sqlite3.connect(path) as db:
            db.execute(
                "CREATE TABLE ledger "
                "(partition_id TEXT, number INTEGER, key TEXT, PRIMARY KEY (partition_id, number))"
            )
        db.close()

    async def _create(self):
        async with self.store():
            pass

    def store(self, port=0):
        """Return a store in the file of the table."""
        return SqliteCheckpointStore(self.path)

    def query(self, statement):
        """Return the rows of a statement."""
        db = sqlite3.connect(self.path)
        try:
            return db.execute(statement).fetchall()
        finally:
            db.close()


def row_of(context, event):
    """Return the values of an event's row."""
    return [context.partition_id, event.sequence_number, str(event.partition_key)]


def batches(insert):
    """Return a handler that writes the rows of a batch in one transaction."""

    class Batches(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            async with context.transaction() as db:
                for event in events:
                    await done(db.execute(insert, row_of(context, event)))

    return Batches


def one_by_one(insert):
    """Return a handler that writes the row of each event in a transaction of its own."""

    class OneByOne(PartitionHandler):
        uses_transactions = True

        async def process_event(self, context, event):
            async with context.transaction() as db:
                await done(db.execute(insert, row_of(context, event)))

    return OneByOne


def blocking(insert):
    """Return a handler of ordinary functions."""

    class Blocking(BlockingPartitionHandler):
        uses_transactions = True

        def process_events(self, context, events):
            with context.transaction() as db:
                for event in events:
                    db.execute(insert, row_of(context, event))

    return Blocking


async def done(result):
    """Wait for a statement, where it has to be waited for."""
    return await result if asyncio.iscoroutine(result) else result


def processor(database, hub, handler, *, port=0, **settings):
    """Return a processor of the group; *port* is that of a proxy before the server."""
    config = EventProcessorConfig(**{**_fields(CONFIG), **settings})
    return EventProcessor(
        source=MemoryEventSource(hub), store=database.store(port), handler=handler, config=config
    )


def _fields(config):
    return {
        name: getattr(config, name)
        for name in ("initial_position", "load_balancing_interval", "rebalance_interval")
    }


def filled_hub(count, *, partitions=2, keys=16):
    """Return a hub with so many events."""
    hub = MemoryHub(partitions)
    for number in range(count):
        hub.publish(str(number).encode(), partition_key=f"k{number % keys}")
    return hub
