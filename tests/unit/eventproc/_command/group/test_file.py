"""A file of checkpoints: invalid values are refused before any checkpoint is moved."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime
from io import StringIO

import pytest

from eventproc import ConfigurationError
from eventproc._command.group.file import (
    ExportedCheckpoint,
    new_file,
    read_file,
    write_exported,
)
from eventproc._command.group.records import Record
from eventproc.errors import StoreUnavailableError
from eventproc.models import Checkpoint, ConsumerGroup, SequenceRange

GROUP = ConsumerGroup(fully_qualified_namespace="host", eventhub_name="orders", name="biling")


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


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from eventproc._command.group.file import new_file
from eventproc.errors import ConfigurationError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    with new_file(Path(sys.argv[1]), overwrites=False) as file:
        file.write("x")
except ConfigurationError as error:
    print(error)
"""


def test_a_file_for_which_the_disk_has_no_room_is_not_left_behind(tmp_path):
    """The next attempt would take it for the only copy of something."""
    path = tmp_path / "orders.json"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "cannot be written" in done.stdout
    assert list(tmp_path.iterdir()) == []


def write(path, text, *, overwrites):
    with new_file(path, overwrites=overwrites) as file:
        file.write(text)


def test_a_file_that_exists_is_replaced_only_on_demand(tmp_path):
    """It may be the only copy of the checkpoints of another group."""
    path = tmp_path / "orders.json"
    write(path, "first", overwrites=False)
    with pytest.raises(ConfigurationError, match=r"exists already, .* or --overwrite to replace"):
        write(path, "second", overwrites=False)
    assert path.read_text() == "first"

    write(path, "3", overwrites=True)
    assert path.read_text() == "3"
    with pytest.raises(ConfigurationError, match="cannot be written: Is a directory"):
        write(tmp_path, "4", overwrites=True)


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize(
    "end", [StoreUnavailableError("gone"), asyncio.CancelledError(), KeyboardInterrupt()], ids=repr
)
def test_an_export_that_does_not_finish_leaves_the_folder_as_it_was(tmp_path, end, overwrites):
    """Half a file must not be taken for a copy, nor replace an older one; also after Ctrl+C, which
    cancels the export.
    """
    path = tmp_path / "orders.json"
    if overwrites:
        path.write_text("older")

    def write_half():
        with new_file(path, overwrites=overwrites) as file:
            file.write("half")
            raise end

    with pytest.raises(type(end)):
        write_half()
    assert [found.read_text() for found in tmp_path.iterdir()] == ["older"] * overwrites


async def parts_of(*parts):
    for part in parts:
        yield [Record(checkpoint=checkpoint) for checkpoint in part]


def checkpoint_of(number, **more):
    return Checkpoint(
        partition_id=str(number),
        offset=str(10 * number),
        sequence_number=number,
        writer="w",
        etag="e",
        last_modified=datetime(2026, 1, 31, tzinfo=UTC),
        **more,
    )


async def test_the_text_does_not_depend_on_the_parts():
    """They only bound the memory."""
    checkpoints = [
        checkpoint_of(0, state=b"s", state_sequence_number=0),
        *map(checkpoint_of, (1, 2)),
    ]
    texts = []
    for parts in ([checkpoints], [checkpoints[:1], checkpoints[1:]]):
        out = StringIO()
        count = await write_exported(out, GROUP, parts_of(*parts), exported_at=datetime.now(UTC))
        assert count == len(checkpoints)
        texts.append(json.loads(out.getvalue()) | {"exported_at": None})

    assert texts[0] == texts[1]
    assert [c["sequence_number"] for c in texts[0]["checkpoints"]] == [0, 1, 2]


async def test_each_part_is_written_before_the_next_one_is_read():
    """All states together may exceed the memory."""
    out, written = StringIO(), []

    async def parts():
        for number in range(3):
            written.append(out.getvalue().count("partition_id"))
            yield [Record(checkpoint=checkpoint_of(number))]

    await write_exported(out, GROUP, parts(), exported_at=datetime.now(UTC))

    assert written == [0, 1, 2]


NONE_EXPORTED = (
    '{"format":"eventproc-checkpoints","version":1,"namespace":"h","eventhub":"o",'
    '"consumer_group":"g","exported_at":"2026-01-31T08:00:00Z","checkpoints":[]}'
)


async def test_a_group_without_checkpoints_is_not_exported():
    """A mistyped name would look like a copy that is done."""
    with pytest.raises(ConfigurationError, match="'biling' of event hub 'orders' has no checkpoi"):
        await write_exported(StringIO(), GROUP, parts_of(), exported_at=datetime.now(UTC))


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
