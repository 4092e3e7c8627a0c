"""The report of the demo: accounts, balance, and the fewest moves that a change needs."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from eventproc._command.demo.report import (
    Accounts,
    Change,
    Report,
    fewest_moves,
    is_balanced,
    make_accounts,
)
from eventproc._core.placement.even import even_plan

owners = st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=20).map(
    lambda names: {str(index): name for index, name in enumerate(names)}
)
alive = st.sets(st.sampled_from(["A", "B", "C", "D"]), min_size=1)


@pytest.mark.parametrize(
    ("names", "live", "expected"),
    [
        ("AABB", "AB", True),
        ("AAAB", "AB", False),
        ("AABB", "ABC", False),
        ("AABB", "A", False),
        ("AAB-", "AB", False),
        ("AABBC", "ABC", True),
        ("A", "AB", True),
        ("AA", "", False),
    ],
)
def test_a_group_is_balanced_if_live_processors_own_all_partitions_evenly(names, live, expected):
    """Their counts differ by one at most."""
    owned = {str(i): None if name == "-" else name for i, name in enumerate(names)}

    assert is_balanced(owned, set(live)) is expected


@given(owners, alive)
def test_the_plan_reaches_balance_with_the_fewest_moves(before, live):
    """So the bound is exact."""
    held = {p: owner for p, owner in before.items() if owner in live}
    after = even_plan(list(before), held, live)
    moved = sum(after[p] != owner for p, owner in before.items())

    assert is_balanced(after, live)
    assert fewest_moves(before, live) == moved


REPORT = Report(
    accounts=Accounts(published=10, handled=10, lost=0, duplicates=3, duplicates_unexplained=0),
    changes=[
        Change(kind="kill", processor="B", seconds_to_balance=6.5, moves=8, moves_minimum=8),
    ],
    result_matches=True,
    aircraft=7,
    partitions=16,
    store="SQLite",
    seconds=41.3,
    problems=[],
)
LOST = replace(REPORT.accounts, handled=9, lost=1)
events = st.tuples(st.sampled_from("01"), st.integers(0, 5))


@given(st.sets(events), st.lists(st.tuples(st.sampled_from("ABC"), events)), st.sets(events))
def test_accounts_agree_with_counting_one_by_one(lost, deliveries, more):
    """Each published event is handled or lost; each delivery beyond the first is a duplicate."""
    delivered = {event for _, event in deliveries}
    published = delivered | lost | more
    by_others = [event for name, event in deliveries if name != "B"]
    accounts = make_accounts(published, deliveries, ["B"])

    assert accounts.published == len(published)
    assert accounts.handled == len(delivered)
    assert accounts.lost == len(published - delivered)
    assert accounts.duplicates == len(deliveries) - len(delivered)
    assert accounts.duplicates_unexplained == len(by_others) - len(Counter(by_others))


def test_a_report_with_duplicates_alone_is_good():
    """A kill causes some; the state counts each event once."""
    assert REPORT.is_good


@pytest.mark.parametrize(
    "change",
    [
        {"accounts": LOST},
        {"result_matches": False},
        {"problems": ["a processor stopped with exit code 1"]},
    ],
)
def test_lost_events_wrong_figures_and_problems_make_a_report_bad(change):
    """Each of them alone."""
    assert not replace(REPORT, **change).is_good


def test_the_report_as_json_has_all_counts_and_changes():
    """At the top of one object."""
    output = json.loads(json.dumps(REPORT.as_json()))

    assert (output["published"], output["handled"], output["lost"]) == (10, 10, 0)
    assert (output["duplicates"], output["result_matches"], output["seconds"]) == (3, True, 41.3)
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
        ({"accounts": LOST}, "lost             1"),
        ({"result_matches": False}, "DIFFERENT"),
        ({"problems": ["the emulator ended"]}, "the emulator ended"),
    ],
)
def test_the_table_shows_the_verdict(change, text):
    """In words, on a page of 80 columns."""
    console = Console(width=80)
    with console.capture() as captured:
        console.print(replace(REPORT, **change).as_table())

    assert text in captured.get()
