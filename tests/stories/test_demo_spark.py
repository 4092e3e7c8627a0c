"""The parts of the Spark demo that need no Spark: expected result, picture, verdict and kill."""

import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from eventproc.cli.demo.flights import Logbook
from eventproc.cli.demo.journal import Accounts
from eventproc.cli.demo.spark import executors
from eventproc.cli.demo.spark.report import Report, print_report
from eventproc.cli.demo.spark.scene import ExecutorScene, PartitionScene, Scene
from eventproc.cli.demo.spark.screen import Lines, draw
from eventproc.cli.demo.spark.weeks import Figures, computed_directly

WEEKS = {("2013-01-07", "JFK"): Figures(2, 300, 5), ("2013-01-14", "EWR"): Figures(1, 50, 0)}
GOOD = Report(
    accounts=Accounts(published=3, handled=3, duplicates=1, lost=0),
    weeks=WEEKS,
    weeks_truth=dict(WEEKS),
    logbook=Logbook(),
    truth=Logbook(),
    partition_count=2,
    at_end_count=2,
    batch_count=4,
    killed=77,
    store="SQLite",
    seconds=40,
)
SCENE = Scene(
    elapsed_s=12.3,
    headline="executor 77 is killed",
    total=400,
    published=200,
    batches=4,
    partitions=[PartitionScene(partition_id=str(n), published=25, committed=n) for n in range(8)],
    executors=[ExecutorScene(pid=77, fate="killed"), ExecutorScene(pid=78, fate="running")],
    week_names=["2013-01-07", "2013-01-14"],
    weeks=WEEKS,
)


def flight(day: str, airport: str, miles: int, late_min: int) -> dict[str, str | int]:
    return {"departed": f"{day} 0517", "from": airport, "miles": miles, "late_min": late_min}


def test_a_week_begins_on_monday_and_early_arrivals_count_as_on_time():
    """They do not reduce the minutes of delay."""
    found = computed_directly(
        [
            flight("2013-01-07", "JFK", 100, 5),
            flight("2013-01-13", "JFK", 200, -9),
            flight("2013-01-14", "EWR", 50, -1),
        ]
    )

    assert found == WEEKS


def test_the_picture_fits_into_24_lines_of_80_characters():
    """With the backlog of each partition, a bar for each week, and killed executors."""
    console = Console(width=80, force_terminal=False)
    with console.capture() as capture:
        console.print(draw(SCENE))
    lines = capture.get().splitlines()

    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)
    assert "25 waiting" in lines[3]
    assert any("JFK" in line and "█" in line and "2 flights" in line for line in lines)
    assert any("77" in line and "killed" in line for line in lines)


def test_lines_print_each_change_once(capsys):
    """Without a terminal the demo prints lines."""
    screen = Lines(sys.stdout)
    screen.show(SCENE)
    screen.show(SCENE)

    assert capsys.readouterr().out.count("executor 77 is killed") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"accounts": Accounts(published=3, handled=2, duplicates=0, lost=1)},
        {"weeks": {}},
        {"at_end_count": 1},
        {"problems": ("a query failed",)},
    ],
)
def test_each_kind_of_problem_makes_the_report_bad(wrong, capsys):
    """And the printed report differs."""
    print_report(GOOD, Console(width=100))
    good = capsys.readouterr().out
    print_report(replace(GOOD, **wrong), Console(width=100))

    assert GOOD.is_good
    assert not replace(GOOD, **wrong).is_good
    assert capsys.readouterr().out != good
    assert "WRONG" not in good


def test_an_executor_is_found_among_child_processes_and_killed():
    """By its command line, and because it is a descendant of this process."""
    command = [sys.executable, "-c", "input()", "CoarseGrainedExecutorBackend"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        found = executors.executors()
        executors.kill(process.pid)
        process.wait()

        assert found == [process.pid]
        assert executors.executors() == []
