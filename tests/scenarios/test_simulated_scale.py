"""The benchmark behind ``docs/simulate.md``: what a group of processors moves and writes."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scale import by_store, events_of, measure, script
from eventproc import Even, Published
from eventproc._command.verbs.simulate import memory_account
from eventproc._simulation import run_script


@pytest.mark.parametrize("size", ["4x2", "18x4"])
def test_every_change_makes_the_fewest_moves_without_a_conflict(size):
    """A cold start, a new processor and a crash; nor has a rolling deployment a conflict."""
    _, *rows = measure(size)

    assert [row["event"].partition(":")[0] for row in rows] == ["start", "join", "crash", "roll"]
    assert all(row["moves"] == row["moves_least"] > 0 for row in rows[:3])
    assert all(row["conflicts"] == 0 for row in rows)


@pytest.mark.parametrize(("partition_count", "processor_count"), [(4, 2), (32, 4)])
def test_the_writes_of_a_balanced_group_follow_from_the_settings(partition_count, processor_count):
    """A partition is renewed each third of the expiration, a member each four expirations."""
    at_rest, *_ = measure(f"{partition_count}x{processor_count}")

    assert at_rest["writes_per_hour"] == partition_count * 180 + processor_count * 15


@pytest.mark.parametrize("size", ["32x4", "256x32"])
def test_the_prices_at_rest_are_those_of_the_page_on_stores(size):
    """A line for each store, with its requests and US dollars a month."""
    page = Path("docs/stores.md").read_text("utf-8")
    for row in by_store(size):
        requests, dollars = row["requests_per_month"], row["dollars_per_month"]
        line = f"| {size.replace('x', ' x ')} | {row['store']} | {requests:,} | {dollars:g} |"
        assert line in page


def test_a_published_plan_makes_the_fewest_moves_without_a_conflict():
    """At a cold start, when a processor joins, and when one crashes; so do 1,000 on 50."""
    events = script(60, 6, 200, "join:1@80", "crash:1@110")
    published = replace(events.config, placement=Published(Even()))
    rows = events_of(run_script(replace(events, config=published), memory_account))

    assert [row["event"] for row in rows] == ["start:6", "join:1", "crash:1"]
    assert all(row["moves"] == row["moves_least"] > 0 for row in rows)
    assert all(row["conflicts"] == 0 for row in rows)
