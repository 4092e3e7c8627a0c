"""The demo's verdict: good only if no event is lost and every figure is right."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from eventproc.cli.demo.flights import Logbook, computed_directly
from eventproc.cli.demo.journal import Accounts
from eventproc.cli.demo.processors.report import Report
from eventproc.cli.demo.processors.scene import Change, ChangeKind
from eventproc.cli.demo.processors.summary import print_summary


def logbook(*late):
    """Return the logbook of one aircraft, whose flights were so many minutes late."""
    return computed_directly({"aircraft": "N1", "late_min": m, "miles": 100} for m in late)


REPORT = Report(
    accounts=Accounts(published=10, handled=10, duplicates=3, lost=0),
    duplicates_unexplained=0,
    handovers=4,
    changes=(
        Change(
            kind=ChangeKind.KILL,
            processors="B",
            began_at=datetime(2026, 1, 31, tzinfo=UTC),
            moves_minimum=8,
            seconds_to_balance=6.5,
            moves=8,
        ),
    ),
    logbook=logbook(1, 2),
    truth=logbook(1, 2),
    seconds=41.26,
    store="SQLite",
    partition_count=16,
)


def test_a_report_with_duplicates_alone_is_good():
    """A kill causes some; the state counts each event once."""
    assert REPORT.is_good


@pytest.mark.parametrize(
    "change",
    [
        {"accounts": Accounts(published=10, handled=9, duplicates=0, lost=1)},
        {"logbook": logbook(1)},
        {"logbook": Logbook()},
        {"problems": ("a processor stopped with exit code 1",)},
    ],
)
def test_lost_events_wrong_figures_and_problems_make_a_report_bad(change):
    """Each of them alone."""
    assert not replace(REPORT, **change).is_good


def test_the_report_as_json_has_all_counts_and_changes():
    """With seconds rounded to tenths."""
    output = json.loads(json.dumps(REPORT.as_json()))

    assert {name: output[name] for name in ("published", "handled", "duplicates", "lost")} == {
        "published": 10,
        "handled": 10,
        "duplicates": 3,
        "lost": 0,
    }
    assert (output["handovers"], output["result_matches"], output["seconds"]) == (4, True, 41.3)
    assert output["changes"] == [
        {
            "kind": "kill",
            "processor": "B",
            "seconds_to_balance": 6.5,
            "moves": 8,
            "moves_minimum": 8,
        }
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, "equal"),
        ({"logbook": logbook(9)}, "DIFFERENT"),
        ({"problems": ("the emulator ended",)}, "the emulator ended"),
    ],
)
def test_the_summary_shows_the_verdict(change, text):
    """In words, on a page of 80 columns."""
    console = Console(width=80)
    with console.capture() as captured:
        print_summary(replace(REPORT, **change), console)

    assert text in captured.get()
