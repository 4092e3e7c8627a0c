"""What a checkpoint covers of a partition's progress, and when the next write is due."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

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


FIVE_SECONDS = timedelta(seconds=5)
BEGIN_S = 1000.0


@pytest.mark.parametrize(
    ("handled_count", "age_s", "max_events", "every", "uncommitted_max", "expected"),
    [
        (0, 99.0, 10, FIVE_SECONDS, None, None),
        (10, 0.0, 10, FIVE_SECONDS, None, 0.0),
        (11, 0.0, 10, None, None, 0.0),
        (9, 2.0, 10, FIVE_SECONDS, None, 3.0),
        (9, 7.0, 10, FIVE_SECONDS, None, 0.0),
        (9, 7.0, 10, None, None, None),
        (9, 2.0, None, FIVE_SECONDS, None, 3.0),
        (9, 2.0, None, None, None, None),
        (9, 2.0, 20, FIVE_SECONDS, 10, 3.0),
        (10, 2.0, 20, FIVE_SECONDS, 10, 0.0),
        (10, 2.0, None, FIVE_SECONDS, 10, 0.0),
        (10, 2.0, None, None, 10, None),
    ],
)
def test_a_checkpoint_is_due_by_count_or_by_age_whichever_comes_first(
    handled_count, age_s, max_events, every, uncommitted_max, expected
):
    """Never with nothing to write. ``max_uncommitted_events`` bounds all but manual policies."""
    uncommitted = UncommittedEvents(
        max_events=max_events, interval=every, max_uncommitted_events=uncommitted_max
    )
    uncommitted.add(handled_count, BEGIN_S)

    assert uncommitted.due_in_s(BEGIN_S + age_s) == expected


@pytest.mark.parametrize(
    ("handled_count", "every", "uncommitted_max", "expected"),
    [
        (9, FIVE_SECONDS, 10, True),
        (10, FIVE_SECONDS, 10, False),
        (99, FIVE_SECONDS, None, True),
        (99, None, 10, True),
    ],
)
def test_there_is_room_below_max_uncommitted_events(
    handled_count, every, uncommitted_max, expected
):
    """With a manual policy there always is: no automatic write would ever make room."""
    uncommitted = UncommittedEvents(
        max_events=None,
        interval=every,
        max_uncommitted_events=uncommitted_max,
        count=handled_count,
    )

    assert uncommitted.has_room is expected


def test_the_age_is_that_of_the_oldest_event():
    """After a checkpoint it counts from then: the events that are left were handled meanwhile."""
    uncommitted = UncommittedEvents(max_events=None, interval=None, max_uncommitted_events=None)
    ages_s = [uncommitted.age_s(1.0)]
    uncommitted.add(2, 2.0)
    uncommitted.add(3, 4.0)
    ages_s.append(uncommitted.age_s(5.0))
    uncommitted.remove(4, 6.0)
    ages_s.append(uncommitted.age_s(8.0))
    uncommitted.remove(1, 9.0)
    ages_s.append(uncommitted.age_s(10.0))

    assert ages_s == [0.0, 3.0, 2.0, 0.0]
