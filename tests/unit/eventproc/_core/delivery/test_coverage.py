"""How much of the progress a checkpoint covers, and when the next one may be due earlier."""

from dataclasses import replace
from datetime import UTC, datetime

from eventproc._core.delivery.checkpoints import checkpoint_after
from eventproc._core.delivery.coverage import Coverage, PendingProgress, UncommittedEvents
from eventproc._core.delivery.progress import PartitionProgress
from eventproc.models import Checkpoint

NOW_S = 1000.0


class Partition:
    """The progress of a partition, and how much of it is stored."""

    def __init__(self) -> None:
        self.progress = PartitionProgress()
        self.coverage = Coverage(
            self.progress,
            UncommittedEvents(max_events=5, interval=None, max_uncommitted_events=None),
            partition_id="0",
            writer="a/1/1",
        )

    def handle(self, number: int, count: int = 1) -> bool:
        """Move the position, and note *count* events; return what ``note`` returns."""
        self.progress.advance(number, f"o{number}")
        return self.coverage.note(count, NOW_S)

    def newest(self) -> PendingProgress:
        """The progress that is to be stored now."""
        pending = self.coverage.newest()
        assert pending is not None
        return pending

    def written(self, pending: PendingProgress) -> Checkpoint:
        """The checkpoint as the store has it when this was written."""
        stored = checkpoint_after(self.coverage.update_of(pending), self.coverage.checkpoint)
        return replace(stored, etag="1", last_modified=datetime.now(UTC))


def test_a_write_covers_the_events_that_were_noted_before_it_began():
    """Those that are handled while it is under way are left for the next one."""
    partition = Partition()
    partition.handle(1, 2)
    pending = partition.newest()
    partition.handle(2, 1)
    partition.coverage.confirm(pending, partition.written(pending), NOW_S)

    assert partition.coverage.uncommitted.count == 1
    assert not partition.coverage.covers(partition.progress.revision)
    last = partition.newest()
    partition.coverage.confirm(last, partition.written(last), NOW_S)
    assert partition.coverage.newest() is None
    assert partition.coverage.covers(partition.progress.revision)


def test_the_first_event_and_a_reached_limit_may_make_a_write_due_earlier():
    """Others change nothing, so nobody is woken for them."""
    partition = Partition()

    assert [partition.handle(number) for number in range(1, 7)] == [
        True,
        False,
        False,
        False,
        True,
        True,
    ]


def test_without_new_progress_or_a_position_nothing_is_counted():
    """There would be nothing to store."""
    partition = Partition()
    assert not partition.coverage.note(3, NOW_S)
    assert partition.coverage.newest() is None
    partition.handle(1)
    partition.coverage.note(3, NOW_S)

    assert partition.coverage.uncommitted.count == 1


def test_a_stored_position_that_is_further_on_is_not_replaced():
    """Another program wrote it while this one owned the partition."""
    partition = Partition()
    partition.handle(9)
    ahead = partition.written(partition.newest())
    partition.progress.restore(replace(ahead, sequence_number=3, offset="o3"))
    partition.progress.touch()
    partition.coverage.checkpoint = ahead

    assert partition.coverage.is_ahead_of(partition.newest())


def test_the_mark_of_a_former_hub_is_written_although_nothing_else_changed():
    """By a writer that says so."""
    partition = Partition()
    partition.handle(1)
    pending = partition.newest()
    partition.coverage.confirm(pending, partition.written(pending), NOW_S)
    partition.coverage.mark_former_hub()

    update = partition.coverage.update_of(partition.newest())

    assert (update.writer, update.sequence_number) == ("former-hub//a/1/1", 1)
