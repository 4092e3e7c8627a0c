"""A file of checkpoints: invalid values are refused before any checkpoint is moved."""

from datetime import UTC, datetime

import pytest

from eventproc import ConfigurationError
from eventproc._command.group.file import ExportedCheckpoint, exported, read_file, write_file
from eventproc.models import ConsumerGroup, SequenceRange


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sequence_number": -7}, "sequence number -7"),
        ({"completed": [(3, 4)]}, "does not lie above"),
        ({"completed": [(9, 8)]}, "range from 9 to 8"),
        ({"sequence_number": None}, "lacks offset or sequence number"),
        ({"offset": ""}, "lacks offset or sequence number"),
    ],
)
def test_an_invalid_position_is_refused(wrong, message):
    """The message names the partition, so that it can be found in the file."""
    good = {"partition_id": "5", "offset": "4096", "sequence_number": 7}
    checkpoint = ExportedCheckpoint(**{**good, **wrong})

    with pytest.raises(ConfigurationError, match=f"partition 5.*{message}"):
        checkpoint.as_move()


def test_a_valid_checkpoint_is_moved_with_its_completed_ranges():
    """State of another position is dropped."""
    checkpoint = ExportedCheckpoint(
        partition_id="5",
        offset="4096",
        sequence_number=7,
        state=b"old",
        state_sequence_number=6,
        completed=[(9, 11)],
    )
    move = checkpoint.as_move()

    assert (move.offset, move.sequence_number, move.state) == ("4096", 7, b"")
    assert move.completed == (SequenceRange(9, 11),)


def test_a_file_that_exists_is_replaced_only_on_demand(tmp_path):
    """It may be the only copy of the checkpoints of another group."""
    path = tmp_path / "orders.json"
    write_file(path, "first", overwrites=False)
    with pytest.raises(ConfigurationError, match=r"exists already, .* or --overwrite to replace"):
        write_file(path, "second", overwrites=False)
    assert path.read_text() == "first"

    write_file(path, "3", overwrites=True)
    assert path.read_text() == "3"
    with pytest.raises(ConfigurationError, match="cannot be written: Is a directory"):
        write_file(tmp_path, "4", overwrites=True)


NONE_EXPORTED = (
    '{"format":"eventproc-checkpoints","version":1,"namespace":"h","eventhub":"o",'
    '"consumer_group":"g","exported_at":"2026-01-31T08:00:00Z","checkpoints":[]}'
)


def test_a_group_without_checkpoints_is_not_exported():
    """A mistyped name would look like a copy that is done."""
    group = ConsumerGroup(fully_qualified_namespace="host", eventhub_name="orders", name="biling")

    with pytest.raises(ConfigurationError, match="'biling' of event hub 'orders' has no checkpoi"):
        exported(group, {}, exported_at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "Expected `object`, got `array`"),
        ("", "truncated"),
        (NONE_EXPORTED, "has no checkpoints"),
    ],
)
def test_a_file_without_checkpoints_is_refused(tmp_path, text, message):
    """The message does not name a class of this program."""
    path = tmp_path / "f.json"
    path.write_text(text)

    with pytest.raises(ConfigurationError, match=message) as refused:
        read_file(path)
    assert "ExportedGroup" not in str(refused.value)
