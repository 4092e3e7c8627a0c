"""The verdict of the demo with RabbitMQ: good only if no order was lost, overtaken or shared."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from eventproc.cli.demo.live import open_screen
from eventproc.cli.demo.rabbitmq.accounts import Accounts
from eventproc.cli.demo.rabbitmq.report import Report
from eventproc.cli.demo.rabbitmq.scene import PodScene, QueueScene, Scene, Step
from eventproc.cli.demo.rabbitmq.screen import Lines, draw
from eventproc.cli.demo.rabbitmq.summary import print_summary

ACCOUNTS = Accounts(
    published=10,
    handled=10,
    lost=0,
    duplicates=3,
    duplicates_unexplained=0,
    out_of_order=0,
    overlaps=1,
    overlaps_unexplained=0,
)
REPORT = Report(
    accounts=ACCOUNTS,
    steps=(Step(what="2 to 4 pods", seconds=1.26, moves=9), Step(what="consumer-3 killed")),
    queue_count=12,
    api_request_count=31,
    seconds=41.26,
    store="SQLite",
    problems=(),
)
SCENE = Scene(
    elapsed_s=12.0,
    headline="the StatefulSet is scaled from 2 to 4",
    total=1000,
    published=500,
    handled=480,
    replicas=2,
    queues=(
        QueueScene(number="0", owner_id="consumer-0", handled=300),
        QueueScene(number="1", owner_id="consumer-1", handled=180),
        QueueScene(number="2", owner_id=None, handled=0),
    ),
    pods=(
        PodScene(name="consumer-0", pid=11, state="running"),
        PodScene(name="consumer-1", pid=12, state="frozen"),
    ),
    steps=(Step(what="2 to 4 pods", seconds=1.26, moves=9),),
)


def test_what_a_kill_or_a_freeze_explains_leaves_a_report_good():
    """Orders that came again, and calls that were frozen."""
    assert REPORT.is_good


@pytest.mark.parametrize(
    "change",
    [
        {"accounts": replace(ACCOUNTS, lost=1)},
        {"accounts": replace(ACCOUNTS, out_of_order=1)},
        {"accounts": replace(ACCOUNTS, duplicates_unexplained=1)},
        {"accounts": replace(ACCOUNTS, overlaps_unexplained=1)},
        {"problems": ("consumer-1 ended with exit code 1",)},
    ],
)
def test_everything_else_makes_a_report_bad(change):
    """Each of them alone."""
    assert not replace(REPORT, **change).is_good


def test_the_report_as_json_has_all_counts_and_steps():
    """With seconds rounded to tenths."""
    output = json.loads(json.dumps(REPORT.as_json()))

    assert output == {
        "published": 10,
        "handled": 10,
        "lost": 0,
        "duplicates": 3,
        "duplicates_unexplained": 0,
        "out_of_order": 0,
        "overlaps": 1,
        "overlaps_unexplained": 0,
        "queues": 12,
        "steps": [
            {"what": "2 to 4 pods", "seconds": 1.3, "moves": 9},
            {"what": "consumer-3 killed", "seconds": None, "moves": 0},
        ],
        "api_requests": 31,
        "seconds": 41.3,
        "store": "SQLite",
        "problems": [],
    }


def test_the_summary_shows_each_step_and_each_problem():
    """In words, on a page of 80 columns."""
    console = Console(width=80)
    with console.capture() as captured:
        print_summary(replace(REPORT, problems=("RabbitMQ ended",)), console)
    text = captured.get()

    assert "2 to 4 pods" in text
    assert "never" in text
    assert "RabbitMQ ended" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_picture_shows_each_queue_with_its_pod():
    """And each pod with its state and the number of its queues."""
    console = Console(width=80)
    with console.capture() as captured:
        console.print(draw(SCENE))
    text = captured.get()

    for words in ("P 0 consumer-0", "P 1 consumer-1", "P 2 -", "frozen", "lag 20"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_lines_tell_each_settled_step_once():
    """With what each pod has then."""
    output = io.StringIO()
    with open_screen(Lines, draw, output) as screen:
        screen.show(SCENE)
        screen.show(SCENE)
    text = output.getvalue()

    assert text.count("settled after 1.3 s, 9 moves: consumer-0 1, consumer-1 1, unowned 1") == 1
