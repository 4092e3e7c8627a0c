"""What one partition keeps over a change of its owner."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from eventproc.compat._partition import Partition
from tests.unit.eventproc._core.events import event
from tests.unit.eventproc.compat.test_checkpoints import Group, update_to


class Refusing:
    """Where no checkpoint may arrive."""

    loop = object()

    def begin(self, partition_id: str) -> None:
        """Note nothing."""


def test_a_new_ownership_has_no_newest_event_before_one_is_delivered():
    """``update_checkpoint()`` without an event would store one of the former ownership."""
    owned: Any = SimpleNamespace(is_owned=True)
    checkpoints: Any = Refusing()
    partition = Partition("0", checkpoints)
    partition.begin(owned)
    newest: Any = event(7)
    partition.newest, partition.delivered = newest, 7
    partition.begin(owned)

    assert partition.store(None, {}) is None
    assert partition.delivered == -1


async def test_what_callbacks_returned_from_is_not_where_the_next_ownership_begins():
    """Without a checkpoint the partition begins again at its time or offset: the program may have
    kept the events, to handle them later.
    """
    owned: Any = SimpleNamespace(is_owned=True)
    async with Group() as group:
        partition = Partition("0", group.checkpoints)
        first = await group.read()
        partition.begin(owned)
        await group.write(update_to(5, None))

        assert (first, await group.read()) == (None, None)


def test_a_checkpoint_without_ownership_changes_nothing_and_waits_for_nothing(caplog):
    """The program may keep its context, and the call of ``receive`` may have ended.

    A warning says so once for each ownership.
    """
    lost: Any = SimpleNamespace(is_owned=False, owner_id="a")
    checkpoints: Any = Refusing()
    partition = Partition("0", checkpoints)
    newest: Any = event(7)
    for _ in range(2):
        partition.begin(lost)
        assert [partition.store(newest, {}) for _ in range(2)] == [None, None]

    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2


def test_the_newest_event_of_the_partition_is_told_with_times():
    """The service gives milliseconds, and names in bytes."""
    found = {
        b"last_enqueued_sequence_number": 41,
        b"last_enqueued_offset": b"4100",
        b"last_enqueued_time_utc": 1_767_225_600_500,
        b"runtime_info_retrieval_time_utc": 1_767_225_601_000,
    }
    checkpoints: Any = None
    partition = Partition("0", checkpoints)
    message = SimpleNamespace(delivery_annotations=found)
    newest: Any = SimpleNamespace(raw_amqp_message=message)
    before, partition.newest = partition.last_enqueued, newest

    assert before is None
    assert partition.last_enqueued == {
        "sequence_number": 41,
        "offset": "4100",
        "enqueued_time": datetime(2026, 1, 1, 0, 0, 0, 500_000, UTC),
        "retrieval_time": datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
    }
