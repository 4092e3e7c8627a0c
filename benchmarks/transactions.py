"""PostgreSQL: what a transaction costs, how soon a joiner serves, what a group at rest asks for.

    python benchmarks/transactions.py            # a table for each question; two minutes
    python benchmarks/transactions.py --format json
    python benchmarks/transactions.py --quick

- *commit*: events a second of one processor that writes a row for each event, a batch at a time: in
  ``context.transaction()``, or in a transaction of its own, with checkpoints beside it. The server
  waits for the disk at each commit.
- *join*: milliseconds from the member record of a joiner to its first call, with a
  ``load_balancing_interval`` of 10 s.
- *rest*: statements a minute of one processor of a group at rest, by PostgreSQL's own count of
  transactions.
"""

import asyncio
import operator
import statistics
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import psycopg

from benchmarks._rows import Row, options, print_progress, print_rows
from checkpointstores.postgres import PostgresCheckpointStore
from eventproc import (
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from tests.servers.postgres_server import PostgresServer

BATCH: Final = 200
PARTITIONS: Final = 4
INSERT: Final = "INSERT INTO ledger VALUES (%s, %s)"
PERCENTILE: Final = 95


class Counting(PartitionHandler):
    """Counts the events, and when the first call of this run came."""

    handled = 0
    first_at_s = 0.0
    owner_id = ""

    def note(self, context: PartitionContext, count: int) -> None:
        """Note a call."""
        Counting.handled += count
        if context.owner_id == Counting.owner_id and not Counting.first_at_s:
            Counting.first_at_s = time.perf_counter()


class InTransaction(Counting):
    """Writes the rows with the position."""

    uses_transactions = True

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Commit the rows of the batch with the position."""
        async with context.transaction() as db, db.cursor() as cursor:
            rows = [(context.partition_id, event.sequence_number) for event in events]
            await cursor.executemany(INSERT, rows)
        self.note(context, len(events))


class Beside(Counting):
    """Writes the rows alone."""

    dsn = ""

    async def initialize(self, _: PartitionContext) -> None:
        """Connect."""
        self.db = await psycopg.AsyncConnection.connect(self.dsn)

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Commit the rows of the batch; checkpoints are written apart."""
        async with self.db.transaction(), self.db.cursor() as cursor:
            rows = [(context.partition_id, event.sequence_number) for event in events]
            await cursor.executemany(INSERT, rows)
        self.note(context, len(events))

    async def close(self, *_: object) -> None:
        """Disconnect."""
        await self.db.close()


class Calls(Counting):
    """Notes its calls."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Note the call."""
        self.note(context, len(events))


def processor(
    server: PostgresServer, hub: MemoryHub, handler: type[Counting], owner_id: str = "a"
) -> EventProcessor:
    """Return a processor of the group."""
    return EventProcessor(
        source=MemoryEventSource(hub),
        store=PostgresCheckpointStore(server.dsn, create_schema=True),
        handler=handler,
        owner_id=owner_id,
        config=EventProcessorConfig(
            initial_position=EventPosition.earliest(),
            batch_size_max=BATCH,
            load_balancing_interval=timedelta(seconds=10),
            rebalance_interval=timedelta(seconds=0.1),
        ),
    )


async def events_per_s(server: PostgresServer, handler: type[Counting], count: int) -> float:
    """Return the throughput of a handler with a hub and tables of its own."""
    with psycopg.connect(server.dsn, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS eventproc CASCADE; DROP TABLE IF EXISTS ledger")
        db.execute("CREATE TABLE ledger (partition_id text, number bigint)")
    Beside.dsn, hub = server.dsn, MemoryHub(PARTITIONS)
    for number in range(count):
        hub.publish(b"x" * 100, partition_id=str(number % PARTITIONS))
    Counting.handled = 0
    async with processor(server, hub, handler):
        while not Counting.handled:  # noqa: ASYNC110 - the handler sets no event
            await asyncio.sleep(0.001)
        begun_s, first = time.perf_counter(), Counting.handled
        while Counting.handled < count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return (count - first) / (time.perf_counter() - begun_s)


async def commit(rounds: int, count: int) -> list[Row]:
    """Measure both handlers in turn; compare those of one round, because the machine may be busy.

    The first of a round alternates.
    """
    handlers = {"beside": Beside, "in transaction": InTransaction}
    seen: dict[str, list[float]] = {name: [] for name in handlers}
    with PostgresServer(settings={"fsync": "on"}) as server:
        for number in range(rounds):
            print_progress(f"commit, round {number + 1} of {rounds}")
            for name in sorted(handlers, reverse=bool(number % 2)):
                seen[name].append(await events_per_s(server, handlers[name], count))
    return [
        {
            "question": "commit",
            "checkpoint": name,
            "events_per_s": round(statistics.median(speeds)),
            "ratio": round(statistics.median(map(operator.truediv, speeds, seen["beside"])), 3),
        }
        for name, speeds in seen.items()
    ]


async def join(rounds: int) -> list[Row]:
    """Let one processor join another again and again, while events are published."""
    took_ms, delivered = [], 0
    with PostgresServer() as server:
        hub = MemoryHub(PARTITIONS)
        Counting.handled = published = 0

        async def publish() -> None:
            nonlocal published
            while True:
                for partition in range(PARTITIONS):
                    hub.publish(b"x", partition_id=str(partition))
                    published += 1
                await asyncio.sleep(0.01)

        async with processor(server, hub, Calls):
            publishing = asyncio.create_task(publish())
            await asyncio.sleep(1)
            for number in range(rounds):
                print_progress(f"join, round {number + 1} of {rounds}")
                Counting.owner_id, Counting.first_at_s = f"joiner-{number}", 0.0
                # ``start`` returns after the member record was written.
                async with processor(server, hub, Calls, Counting.owner_id):
                    begun_s = time.perf_counter()
                    while not Counting.first_at_s:  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
                    took_ms.append((Counting.first_at_s - begun_s) * 1000)
                await asyncio.sleep(0.5)
            publishing.cancel()
            while Counting.handled < published:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await asyncio.sleep(1)
            delivered = Counting.handled
    ordered = sorted(took_ms)
    return [
        {
            "question": "join",
            "joins": rounds,
            "median_ms": round(statistics.median(ordered)),
            "p95_ms": round(ordered[min(rounds - 1, rounds * PERCENTILE // 100)]),
            "duplicates": delivered - published,
        }
    ]


async def rest(seconds: float) -> list[Row]:
    """Count the statements of a processor at rest."""
    query = "SELECT sum(xact_commit) FROM pg_stat_database"
    with PostgresServer() as server:
        async with processor(server, MemoryHub(32), Calls):
            # The server counts what a connection did before when it does something again.
            await asyncio.sleep(min(15.0, seconds))
            with psycopg.connect(server.dsn, autocommit=True) as db:
                [before] = db.execute(query).fetchone() or [0]
                print_progress(f"rest, {seconds:g} s")
                await asyncio.sleep(seconds)
                [after] = db.execute(query).fetchone() or [0]
    per_minute = round(float(after - before) * 60 / seconds)
    return [{"question": "rest", "partitions": 32, "statements_per_minute": per_minute}]


def main() -> None:
    """Measure, and print."""
    given = options(__doc__).parse_args()
    rounds, count, joins, seconds = (1, 2_000, 2, 2.0) if given.quick else (21, 12_000, 40, 60.0)
    rows = (
        asyncio.run(commit(rounds, count)) + asyncio.run(join(joins)) + asyncio.run(rest(seconds))
    )
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
