"""Rows, position and state of a handler's transaction are committed together, or none is."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    CheckpointPolicy,
    CloseReason,
    ConfigurationError,
    EventProcessor,
    FailureAction,
    FailurePolicy,
    OwnershipLostError,
    PartitionHandler,
    StoreUnavailableError,
)
from eventproc.errors import CommitUnknownError, TransactionsRefusedError
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from tests.integration.transactions.transaction_setup import (
    Postgres,
    Sqlite,
    batches,
    blocking,
    done,
    filled_hub,
    one_by_one,
    processor,
    row_of,
)
from tests.servers.lossy_proxy import LossyProxy

CHECKPOINTS = "SELECT sum(sequence_number + 1) FROM checkpoint"


@pytest.fixture(name="database", params=["postgres", "sqlite"])
def _database(request, tmp_path):
    """Return each database in turn, with an empty table."""
    if request.param == "sqlite":
        return Sqlite(tmp_path / "store.db")
    return Postgres(request.getfixturevalue("postgres"))


def checkpointed(database):
    """Return how many events the checkpoints cover."""
    return int(database.query(CHECKPOINTS)[0][0] or 0)


@pytest.mark.parametrize("key_concurrency", [1, 8])
@pytest.mark.parametrize("make", [batches, one_by_one, blocking])
async def test_each_event_has_one_row_and_the_checkpoint_covers_it(database, make, key_concurrency):
    """In batches, one by one, and in threads; with one key at a time, and with eight."""
    hub = filled_hub(100)
    handler = make(database.insert)
    async with processor(database, hub, handler, key_concurrency=key_concurrency):
        await database.until(100)
        covered = await asyncio.to_thread(checkpointed, database)
    if key_concurrency == 1:
        assert covered == 100
    async with processor(database, hub, handler, key_concurrency=key_concurrency):
        hub.publish(b"more", partition_id="0")
        await database.until(101)

    assert len(database.rows()) == checkpointed(database) == 101


async def test_an_error_in_the_block_undoes_rows_position_and_state(database):
    """The events are delivered again, with the state of before."""
    hub, seen = filled_hub(10, partitions=1), []

    class Failing(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            async with context.transaction() as db:
                seen.append((context.state, len(events)))
                context.state = b"%d" % len(seen)
                for event in events:
                    await done(db.execute(database.insert, row_of(context, event)))
                if len(seen) == 1:
                    raise RuntimeError("after the rows")

    async with processor(database, hub, Failing):
        await database.until(10)

    assert seen[0] == (None, 10)
    assert seen[1][0] is None
    assert len(database.rows()) == 10


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_batch", [False, True])
async def test_a_transaction_in_close_covers_no_event_of_a_call_that_failed(
    database, fails, is_batch
):
    """Its last call was cancelled or raised an error while the processor stopped."""
    hub, is_inside = filled_hub(3, partitions=1), asyncio.Event()

    class Closing(PartitionHandler):
        uses_transactions = True

        async def process_event(self, context, event):
            await self.write(context, [event])

        async def write(self, context, events):
            async with context.transaction() as db:
                for event in events:
                    await done(db.execute(database.insert, row_of(context, event)))
                if events[-1].sequence_number > 0:
                    is_inside.set()
                    await asyncio.sleep(0.2 if fails else 60)
                    raise RuntimeError("while it stops")

        async def close(self, context, reason):
            async with context.transaction() as db:
                await done(db.execute("SELECT 1"))

    if is_batch:
        Closing.process_events = Closing.write  # type: ignore[assignment, method-assign]
    settings = {"shutdown_timeout": timedelta(seconds=3)}
    async with processor(database, hub, Closing, batch_size_max=2, **settings):
        await is_inside.wait()
    async with processor(database, hub, batches(database.insert)), asyncio.timeout(200):
        await database.until(3)

    assert database.rows() == [("0", 0), ("0", 1), ("0", 2)]


async def test_an_error_that_the_handler_catches_undoes_the_state_too(database):
    """The block's end restores the state, whatever the handler does with the error."""
    hub, states = filled_hub(1, partitions=1), []

    class Catching(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            context.state = b"before"
            try:
                async with context.transaction():
                    context.state = b"inside"
                    raise RuntimeError  # noqa: TRY301 - as any code in the block may
            except RuntimeError:
                states.append(context.state)
            async with context.transaction() as db:
                await done(db.execute(database.insert, row_of(context, events[0])))

    async with processor(database, hub, Catching):
        await database.until(1)

    assert states == [b"before"]
    assert database.query("SELECT count(*) FROM ledger") == [(1,)]


async def test_a_row_that_the_database_refuses_fails_its_event_alone(database):
    """As any error of a handler: the others are committed."""
    hub = filled_hub(10, partitions=1)

    class Refused(PartitionHandler):
        uses_transactions = True

        async def process_event(self, context, event):
            async with context.transaction() as db:
                values = row_of(context, event)
                await done(db.execute(database.insert, values))
                if event.sequence_number == 4:
                    await done(db.execute(database.insert, values))

    policy = FailurePolicy(attempts_max=2, action=FailureAction.SKIP)
    async with processor(database, hub, Refused, failure_policy=policy):
        await database.until(9)

    assert [number for _, number in database.rows()] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("what", ["commit", "rollback", "COMMIT"])
async def test_a_handler_cannot_commit_by_itself(database, what):
    """Its rows would be stored without their position; the error says what to do."""
    hub, errors = filled_hub(1, partitions=1), []
    failed = asyncio.Event()

    class Committing(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            async with context.transaction() as db:
                await done(db.execute("COMMIT") if what == "COMMIT" else getattr(db, what)())

        async def process_error(self, context, error):
            errors.append(error)
            failed.set()

    async with processor(database, hub, Committing):
        await failed.wait()

    assert errors
    assert not database.rows()
    assert checkpointed(database) == 0


@pytest.mark.parametrize("what", ["checkpoint", "done", "transaction"])
async def test_what_would_store_a_position_without_its_rows_is_refused(database, what):
    """Inside of the block."""
    hub, errors = filled_hub(1, partitions=1), []
    failed = asyncio.Event()

    class Storing(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            async with context.transaction():
                if what == "checkpoint":
                    await context.checkpoint(events[0])
                elif what == "done":
                    context.done(events[0])
                else:
                    async with context.transaction():
                        pass

        async def process_error(self, context, error):
            errors.append(error)
            failed.set()

    async with processor(database, hub, Storing):
        await failed.wait()

    assert isinstance(errors[0], TransactionsRefusedError)
    assert checkpointed(database) == 0


async def test_an_owner_whose_checkpoint_was_written_by_another_commits_nothing(postgres):
    """It reports that the ownership is lost, ends, and begins again at the stored checkpoint."""
    database, hub = Postgres(postgres), filled_hub(6, partitions=1)
    moved: list[bool] = []
    errors: list[OwnershipLostError] = []

    class Slow(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            try:
                async with context.transaction() as db:
                    for event in events:
                        await done(db.execute(database.insert, row_of(context, event)))
                    if not moved:
                        moved.append(True)
                        await asyncio.to_thread(
                            database.query,
                            "UPDATE checkpoint SET etag = 'b', writer = 'b/1/1' RETURNING etag",
                        )
            except OwnershipLostError as error:
                errors.append(error)
                raise

    async with processor(database, hub, Slow):
        await database.until(6)

    assert len(errors) == 1
    assert len(database.rows()) == 6


async def test_an_owner_that_finds_another_writers_checkpoint_begins_again_there(tmp_path):
    """Although its lease is valid: events of another writer's transaction must not be repeated."""
    database = await asyncio.to_thread(Sqlite, tmp_path / "store.db")
    hub = filled_hub(6, partitions=1)
    reasons: list[CloseReason] = []
    offsets: list[int] = []

    class Displaced(PartitionHandler):
        uses_transactions = True

        async def process_event(self, context, event):
            offsets.append(int(event.offset))
            if event.sequence_number == 2:
                await asyncio.to_thread(self.commit_as_another, offsets[-1] - offsets[-2])
                raise ValueError
            if event.sequence_number == 3:
                async with asyncio.timeout(20):
                    await asyncio.Event().wait()  # Until the call is cancelled.
            async with context.transaction() as db:
                await done(db.execute(database.insert, row_of(context, event)))

        def commit_as_another(self, event_size):
            """Store events 2 and 3, as a processor does that had the partition for a moment."""
            with sqlite3.connect(database.path) as db:
                db.executemany(database.insert, [["0", 2, "k2"], ["0", 3, "k3"]])
                db.execute(
                    "UPDATE checkpoint SET etag = 'b', writer = 'b/1/1', \"offset\" = ?, "
                    "sequence_number = 3",
                    [str(offsets[-1] + event_size)],
                )
            db.close()

        async def close(self, context, reason):
            reasons.append(reason)

    policy = FailurePolicy(attempts_max=1, action=FailureAction.SKIP)
    every_event = CheckpointPolicy(max_events=1)
    async with processor(
        database, hub, Displaced, failure_policy=policy, checkpoint_policy=every_event
    ):
        await database.until(6)

    assert reasons[0] is CloseReason.OWNERSHIP_LOST
    assert database.rows() == [("0", number) for number in range(6)]


async def test_without_the_attribute_a_transaction_is_refused(postgres):
    """The error names it: otherwise a store without transactions would be noticed too late."""
    database, hub = Postgres(postgres), filled_hub(1, partitions=1)
    errors: list[Exception] = []
    failed = asyncio.Event()

    class Undeclared(PartitionHandler):
        async def process_events(self, context, events):
            async with context.transaction():
                pass

        async def process_error(self, context, error):
            errors.append(error)
            failed.set()

    async with processor(database, hub, Undeclared):
        await failed.wait()

    assert "uses_transactions = True" in str(errors[0])


@pytest.mark.parametrize("is_class", [True, False])
async def test_a_store_without_transactions_is_refused_at_the_start(is_class):
    """Also if the handler is made by a function."""

    class Handler(PartitionHandler):
        uses_transactions = True

        async def process_event(self, context, event):
            """Do nothing."""

    with pytest.raises(ConfigurationError, match="MemoryCheckpointStore has none"):
        await EventProcessor(
            source=MemoryEventSource(MemoryHub(1)),
            store=MemoryCheckpointStore(),
            handler=Handler if is_class else lambda: Handler(),  # noqa: PLW0108
        ).start()


async def test_a_lost_connection_in_a_block_is_a_missing_answer(postgres):
    """Nothing is committed, and the events are delivered again."""
    database, hub = Postgres(postgres), filled_hub(3, partitions=1)
    errors: list[Exception] = []

    class Cut(PartitionHandler):
        uses_transactions = True

        async def process_events(self, context, events):
            async with context.transaction() as db:
                for event in events:
                    await db.execute(database.insert, row_of(context, event))
                if not errors:
                    await asyncio.to_thread(
                        database.query, f"SELECT pg_terminate_backend({db.info.backend_pid})"
                    )
                    await db.execute("SELECT 1")

        async def process_error(self, context, error):
            errors.append(error)

    async with processor(database, hub, Cut):
        await database.until(3)

    assert isinstance(errors[0], StoreUnavailableError)


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_commit_without_an_answer_ends_the_pump_which_finds_out(postgres, is_committed):
    """The rows are there once, whether the commit took effect or not."""
    database, hub = Postgres(postgres), filled_hub(5, partitions=1)
    begun: list[bool] = []
    errors: list[OwnershipLostError] = []
    reasons: list[CloseReason] = []
    told = asyncio.Event()

    async with LossyProxy(postgres.port) as proxy:

        class Unanswered(PartitionHandler):
            uses_transactions = True

            async def process_events(self, context, events):
                try:
                    await self._write(context, events)
                except OwnershipLostError as error:
                    errors.append(error)
                    told.set()
                    raise

            async def _write(self, context, events):
                async with AsyncExitStack() as stack, context.transaction() as db:
                    for event in events:
                        await db.execute(database.insert, row_of(context, event))
                    if not begun and is_committed:
                        await stack.enter_async_context(proxy.lose_answers(None))
                    elif not begun:
                        query = f"SELECT pg_terminate_backend({db.info.backend_pid})"
                        await asyncio.to_thread(database.query, query)
                    begun.append(True)

            async def close(self, context, reason):
                reasons.append(reason)

        async with processor(database, hub, Unanswered, port=proxy.port):
            await database.until(5)
            await told.wait()  # The rows of a commit are there before its answer is missed.

    assert [type(error) for error in errors] == [CommitUnknownError]
    assert reasons[0] in {CloseReason.OWNERSHIP_LOST, CloseReason.SHUTDOWN}
    assert len(database.rows()) == 5
