"""A transaction of a handler: which progress it commits, and when it ends the pump."""

import asyncio

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.errors import (
    CommitUnknownError,
    OwnershipLostError,
    PositionUnknownError,
    TransactionsRefusedError,
)
from eventproc.models import CheckpointUpdate, SequenceRange
from tests.unit.eventproc._core.events import events
from tests.unit.eventproc._delivery.sqlite_fixture import GROUP, Partition, begun

pytestmark = pytest.mark.real_time  # with threads


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "store.db"


async def write_as_another(store):
    """Write the checkpoint as its next owner does."""
    found = await store.read_checkpoint(GROUP, "0")
    update = CheckpointUpdate(
        partition_id="0", offset="o0", sequence_number=0, writer="b/1/1", replaces=found
    )
    await store.update_checkpoint(GROUP, update)


async def test_a_commit_stores_its_events_and_leaves_nothing_to_write(path):
    """The next flush finds that everything is stored, so the ETag stays."""
    async with begun(path) as partition:
        partition.progress.done(events([1]))
        partition.checkpointer.note(1)
        assert await partition.commit([2, 3]) == [2]
        stored = await partition.stored()
        await partition.checkpointer.flush()

        assert (stored.sequence_number, partition.checkpointer.coverage.uncommitted.count) == (3, 0)
        assert await partition.stored() == stored == partition.checkpointer.stored
        assert partition.written == [3]


async def test_progress_that_other_keys_make_during_a_commit_is_still_to_be_stored(path):
    """The commit does not contain it, so the next write does."""
    async with begun(path, has_state=False) as partition:
        async with partition.commits.begin(is_blocking=False) as transaction:
            committing = asyncio.ensure_future(
                partition.commits.commit(transaction, events([1]), lambda _: None)
            )
            await asyncio.sleep(0)  # It is under way in SQLite's thread.
            partition.progress.done(events([3]))
            partition.checkpointer.note(1)
            await committing
        committed = await partition.stored()
        await partition.checkpointer.flush()
        stored = await partition.stored()

    assert (committed.sequence_number, committed.completed) == (1, ())
    assert (stored.sequence_number, stored.completed) == (1, (SequenceRange(3, 3),))


async def test_a_commit_below_the_stored_position_is_refused(path):
    """The pump ends, and the next one begins at the stored position."""
    async with begun(path) as partition:
        partition.progress.done(events(range(1, 10)))
        await partition.checkpointer.flush()
        partition.progress.pin(0, "o0")
        with pytest.raises(OwnershipLostError):
            await partition.commit([])

        assert (await partition.stored()).sequence_number == 9


async def test_a_commit_whose_outcome_is_not_known_says_so(path, caplog):
    """As when the file was moved meanwhile. The rows are there, so the pump ends: if it went on, it
    would find a checkpoint of its own, and deliver the events again."""
    moved = path.with_name("moved.db")
    async with begun(path) as partition:
        with pytest.raises(CommitUnknownError, match="not known whether the transaction"):
            await partition.commit([1], lambda: path.rename(moved))
        await asyncio.to_thread(moved.rename, path)
        partition.progress.touch()
        with pytest.raises(OwnershipLostError, match="no longer owned"):
            await partition.checkpointer.flush()

        assert (await partition.stored()).sequence_number == 1
        assert partition.progress.sequence_number == 0
    assert "transaction_not_committed outcome=unknown error=" in caplog.text


async def test_a_commit_over_another_writers_checkpoint_is_a_lost_partition(path, caplog):
    """Its outcome is known, and the log says so."""
    async with begun(path) as partition:
        await write_as_another(partition.store)
        with pytest.raises(OwnershipLostError) as caught:
            await partition.commit([1])

        assert type(caught.value) is OwnershipLostError
        assert (await partition.stored()).writer == "b/1/1"
        assert partition.progress.sequence_number == 0
    assert "transaction_not_committed outcome=lost\n" in caplog.text


async def test_a_checkpoint_over_another_writers_is_a_lost_partition_although_the_lease_is_valid(
    path,
):
    """The other one may have committed these events: they would be committed twice."""
    async with begun(path) as partition:
        await write_as_another(partition.store)
        partition.progress.done(events([1]))
        with pytest.raises(OwnershipLostError):
            await partition.checkpointer.flush()
        with pytest.raises(OwnershipLostError):
            await partition.commit([2])

        assert (await partition.stored()).writer == "b/1/1"


async def test_a_commit_without_a_position_is_refused(path):
    """No position could be stored with its rows; the pump goes on."""
    async with SqliteCheckpointStore(path) as store:
        partition = Partition(store, has_state=True)
        with pytest.raises(PositionUnknownError):
            await partition.commit([])
        await partition.transactions.close()

        assert await partition.stored() is None
        await partition.checkpointer.flush()


@pytest.mark.parametrize("error", [ValueError("a row"), TransactionsRefusedError("a commit")])
async def test_an_error_of_the_block_is_the_handlers_own(path, error):
    """And the next transaction can begin."""
    async with begun(path) as partition:
        with pytest.raises(type(error), match=str(error)):
            async with partition.commits.begin(is_blocking=False):
                raise error

        assert await partition.commit([1]) == [1]


async def test_no_checkpoint_is_sent_while_a_transaction_of_a_store_with_one_writer_is_open(path):
    """The thread of the store would wait for the file, and lease renewals behind it."""
    async with begun(path) as partition:
        partition.sent.clear()
        async with partition.commits.begin(is_blocking=False):
            partition.progress.done(events([1]))
            flushing = asyncio.ensure_future(partition.checkpointer.flush())
            await asyncio.wait([flushing], timeout=0.05)
            sent = list(partition.sent)
        await flushing

        assert (sent, partition.sent) == ([], [1])
