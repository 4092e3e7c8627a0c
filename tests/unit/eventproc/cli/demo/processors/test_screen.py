"""The demo's output: a picture that fits a terminal, or lines."""

import io
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console

from eventproc.cli.demo.live import open_screen
from eventproc.cli.demo.processors.scene import (
    Change,
    ChangeKind,
    PartitionScene,
    ProcessorScene,
    Scene,
)
from eventproc.cli.demo.processors.screen import Lines, draw

CHANGE = Change(
    kind=ChangeKind.KILL,
    processors="B",
    began_at=datetime(2026, 1, 31, tzinfo=UTC),
    moves_minimum=8,
)
SCENE = Scene(
    elapsed_s=21.5,
    headline="B is killed (SIGKILL), without notice",
    total=100_000,
    published=50_000,
    handled=49_000,
    partitions=tuple(
        PartitionScene(
            partition_id=str(index),
            owner_id="AB"[index % 2],
            handled=3000,
            published=3125 if index == 7 else 3000,
        )
        for index in range(16)
    ),
    processors=(
        ProcessorScene(name="A", pid=4711, fate="running", delivered=30_000),
        ProcessorScene(name="B", pid=4712, fate="killed", delivered=19_000),
        ProcessorScene(name="C", pid=4713, fate="starting", delivered=0),
        ProcessorScene(name="D", pid=4714, fate="left", delivered=0),
    ),
    changes=(
        replace(CHANGE, kind=ChangeKind.START, processors="A", seconds_to_balance=0.4),
        replace(CHANGE, kind=ChangeKind.JOIN, processors="B, C", seconds_to_balance=0.4),
        replace(CHANGE, kind=ChangeKind.JOIN, processors="D", seconds_to_balance=0.4),
        replace(CHANGE, kind=ChangeKind.FREEZE, processors="C", seconds_to_balance=0.4),
        replace(CHANGE, kind=ChangeKind.THAW, processors="C", seconds_to_balance=0.4),
        replace(CHANGE, kind=ChangeKind.LEAVE, processors="A", seconds_to_balance=0.4),
        CHANGE,
    ),
)


def drawn(scene):
    """Return the picture on a terminal of 80 columns."""
    console = Console(width=80)
    with console.capture() as captured:
        console.print(draw(scene))
    return captured.get()


def test_the_picture_fits_a_terminal():
    """24 lines of 80 characters, with 16 partitions and four processes."""
    lines = drawn(SCENE).splitlines()

    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80


def test_the_picture_shows_headline_processes_lag_and_changes():
    """With the durations of finished changes."""
    text = drawn(SCENE)

    for part in ("21.5 s", "B is killed", "lag 1,000", "125", "process 4711", "killed", "A: 0.4 s"):
        assert part in text
    assert "kill B: ..." in text


def test_a_last_row_with_one_partition_can_be_drawn():
    """The other half of the row is empty. Before the first event there are no bars."""
    three = tuple(replace(row, handled=0, published=0) for row in SCENE.partitions[:3])
    scene = replace(SCENE, partitions=three, published=0, handled=0, changes=())

    assert len(drawn(scene).splitlines()) <= 12


def test_lines_print_each_change_once():
    """A headline and a balance once, progress every few seconds."""
    output = io.StringIO()
    lines = Lines(output)
    lines.print_line("starting")
    lines.show(SCENE)
    lines.show(SCENE)
    balanced = replace(CHANGE, seconds_to_balance=6.5)
    lines.show(replace(SCENE, changes=(*SCENE.changes[:-1], balanced), elapsed_s=22.0))
    lines.show(replace(SCENE, changes=(*SCENE.changes[:-1], balanced), elapsed_s=30.0))
    text = output.getvalue()

    assert text.count("B is killed") == 1
    assert text.count("balanced after 6.5 s: A 8, B 8") == 1
    assert text.count("published 50,000 of 100,000, handled 49,000, lag 1,000") == 1


def test_without_a_terminal_lines_are_printed():
    """So a pipe gets no control characters."""
    with open_screen(Lines, draw, io.StringIO()) as screen:
        assert isinstance(screen, Lines)
