"""Where a partition begins, and which checkpoint may be written."""

from datetime import UTC, datetime

import pytest

from eventproc.core.checkpoint_rules import adoption, completed_above, is_behind, starting_position
from eventproc.models import Checkpoint, CheckpointUpdate, EventPosition, SequenceRange

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
        delivery_count=2,
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
        delivery_count=2,
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
