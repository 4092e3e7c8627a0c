"""Moves and hand-overs are counted in the processors' logs."""

import json
from datetime import UTC, datetime, timedelta

from eventproc.cli.demo.processors.movements import (
    count_hand_overs,
    count_moves,
    first_start,
    read_logs,
    serving,
)

START = datetime(2026, 1, 31, 8, tzinfo=UTC)


def at(second):
    """Return the time *second* seconds after the start."""
    return START + timedelta(seconds=second)


def log(path, *lines):
    """Write a log of (second, event, fields)."""
    text = [
        json.dumps({"time": at(second).isoformat(), "event": event, **fields})
        for second, event, fields in lines
    ]
    path.write_text("\n".join(text))
    return path


def started(second, owner_id, partition_id="0"):
    """Return a log event of a partition's start."""
    return (second, "partition_started", {"owner_id": owner_id, "partition_id": partition_id})


def test_a_move_is_a_start_by_another_owner_than_the_last_one(tmp_path):
    """A start again by the same owner is not. Moves are counted for each span of time."""
    a = log(tmp_path / "a", started(1, "A"), started(2, "A"), started(1, "A", "1"), started(9, "A"))
    b = log(tmp_path / "b", started(6, "B"))
    moves = count_moves(read_logs([a, b]), [at(0), at(5), at(8), at(20)])

    assert moves == [2, 1, 1, 0]


def test_a_partition_is_served_by_the_processor_that_started_it_last(tmp_path):
    """In order of time, over the logs of all processors."""
    a = log(tmp_path / "a", started(1, "A"), started(7, "A", "1"))
    b = log(tmp_path / "b", started(6, "B"), started(2, "B", "1"))

    assert serving(read_logs([a, b])) == {"0": "B", "1": "A"}


def test_only_won_hand_overs_to_an_owner_are_counted(tmp_path):
    """Not releases, lost ones, or those after the end."""
    fields = {"to_owner_id": "B", "outcome": "won"}
    path = log(
        tmp_path / "a",
        (1, "partition_handed_over", fields),
        (2, "partition_released", fields),
        (3, "partition_released", fields | {"to_owner_id": None}),
        (4, "partition_handed_over", fields | {"outcome": "lost"}),
        (9, "partition_released", fields),
    )

    assert count_hand_overs(read_logs([path]), before=at(5)) == 2


def test_an_incomplete_line_of_a_log_is_ignored(tmp_path):
    """A killed process may leave one."""
    path = log(tmp_path / "a", started(1, "A"))
    path.write_text(path.read_text() + '\n{"time": "2026-01-3')

    assert len(read_logs([path])) == 1


def test_the_first_start_is_the_earliest_of_all_processes(tmp_path):
    """``None`` before any has started."""
    a = log(tmp_path / "a", (5, "processor_started", {}))
    b = log(tmp_path / "b", (3, "processor_started", {}))

    assert first_start(read_logs([a, b])) == at(3)
    assert first_start([]) is None
