"""Where a partition begins, and which checkpoint may be written."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from eventproc._core.delivery.checkpoints import (
    adoption,
    completed_above,
    former_hubs_writer,
    handled_in_hub,
    is_behind,
    is_beyond_end,
    is_of_former_hub,
    pump_owner,
    pumps_writer,
    restart_in_new_hub,
    starting_position,
)
from eventproc.models import (
    IN_PART,
    Checkpoint,
    CheckpointUpdate,
    EventPosition,
    PartitionProperties,
    SequenceRange,
)

LATEST = EventPosition.latest()


DONE = (SequenceRange(9, 9), SequenceRange(12, 20))


def stored(offset: str | None = "4096", sequence_number: int | None = 7) -> Checkpoint:
    """A checkpoint as a store returns it."""
    return Checkpoint(
        partition_id="0",
        offset=offset,
        sequence_number=sequence_number,
        state=b"7",
        completed=DONE,
        isolation=IN_PART,
        etag="1",
        last_modified=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        (None, LATEST),
        (stored(offset=None, sequence_number=None), LATEST),
        (stored(), EventPosition.from_offset("4096", sequence_number=7)),
        (stored(sequence_number=None), EventPosition.from_offset("4096")),
        (stored(offset=None), EventPosition.from_sequence_number(7)),
    ],
)
def test_reading_begins_after_the_checkpoint(checkpoint, expected):
    """After its offset, or else its sequence number; without both at the configured position."""
    assert starting_position(checkpoint, LATEST) == expected


def test_adoption_writes_the_checkpoint_back_under_another_writer():
    """``state=None`` leaves the stored state alone."""
    found = stored()

    assert adoption(found, "me/1") == CheckpointUpdate(
        partition_id="0",
        offset="4096",
        sequence_number=7,
        replaces=found,
        writer="me/1",
        state=None,
        completed=DONE,
        isolation=IN_PART,
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (8, DONE),
        (9, DONE[1:]),
        (11, DONE[1:]),
        (12, (SequenceRange(13, 20),)),
        (19, (SequenceRange(20, 20),)),
        (20, ()),
    ],
)
def test_completed_ranges_are_cut_at_the_position(number, expected):
    """Ranges up to the position are dropped; one that contains it begins after it."""
    assert completed_above(DONE, number) == expected


@pytest.mark.parametrize("found", [None, stored(offset=None), stored(sequence_number=None)])
def test_a_checkpoint_without_offset_or_sequence_number_is_not_adopted(found):
    """A blank checkpoint would make the listings of Azure SDK processors fail."""
    assert adoption(found, "me/1") is None


@pytest.mark.parametrize(
    ("number", "checkpoint", "expected"),
    [
        (6, stored(), True),
        (7, stored(), False),
        (8, stored(), False),
        (0, None, False),
        (0, stored(sequence_number=None), False),
    ],
)
def test_only_a_lower_sequence_number_is_behind(number, checkpoint, expected):
    """The same position may be written again."""
    assert is_behind(number, checkpoint) is expected


WRITTEN_AT = stored().last_modified
A_MOMENT = timedelta(milliseconds=1)
MARK = former_hubs_writer(pumps_writer("host-1", "abc", 3))


@pytest.mark.parametrize(
    ("checkpoint", "hub_created_at", "expected"),
    [
        (stored(), WRITTEN_AT + A_MOMENT, True),
        (stored(), WRITTEN_AT, False),
        (stored(), None, False),
        (stored(sequence_number=None), WRITTEN_AT + A_MOMENT, True),
        (stored(sequence_number=-1), WRITTEN_AT + A_MOMENT, False),
        (replace(stored(), writer=MARK), None, True),
        (replace(stored(), writer=MARK), WRITTEN_AT - A_MOMENT, True),
        (replace(stored(), writer="host-1/abc/3"), None, False),
    ],
)
def test_a_checkpoint_is_of_a_former_hub_if_it_is_older_or_marked(
    checkpoint, hub_created_at, expected
):
    """The position before the first event is one of any hub; a mark needs no time."""
    assert is_of_former_hub(checkpoint, hub_created_at) is expected


def test_a_mark_names_the_pump_that_wrote_it_and_is_not_repeated():
    """So ``status`` and ``checkpoints list`` show the owner."""
    assert pump_owner(MARK) == "host-1"
    assert former_hubs_writer(MARK) == MARK


@pytest.mark.parametrize(
    ("number", "expected"), [(None, False), (-1, False), (7, False), (8, True)]
)
def test_a_position_is_beyond_the_end_above_the_last_event_that_ever_was(number, expected):
    """Also if retention deleted that event."""
    end = PartitionProperties(
        partition_id="0",
        beginning_sequence_number=8,
        last_enqueued_sequence_number=7,
        last_enqueued_offset="4096",
        last_enqueued_time=None,
        is_empty=True,
    )

    assert is_beyond_end(number, end) is expected
    assert handled_in_hub(stored(sequence_number=number), end, None) == (
        None if expected else number
    )


def test_a_checkpoint_of_a_former_hub_covers_no_event_of_this_one():
    """Nor is anything covered without a checkpoint."""
    end = PartitionProperties(
        partition_id="0",
        beginning_sequence_number=0,
        last_enqueued_sequence_number=100,
        last_enqueued_offset="4096",
        last_enqueued_time=None,
        is_empty=False,
    )

    assert handled_in_hub(stored(), end, WRITTEN_AT) == 7
    assert handled_in_hub(stored(), end, WRITTEN_AT + A_MOMENT) is None
    assert handled_in_hub(replace(stored(), writer=MARK), end, WRITTEN_AT) is None
    assert handled_in_hub(None, end, WRITTEN_AT) is None


def test_in_a_new_hub_a_partition_begins_before_the_first_event_without_state():
    """Nor are there completed ranges or deliveries."""
    found = stored()

    assert restart_in_new_hub(found, "me/1") == CheckpointUpdate(
        partition_id="0",
        offset="-1",
        sequence_number=-1,
        replaces=found,
        writer="me/1",
        state=b"",
        is_reset=True,
    )
