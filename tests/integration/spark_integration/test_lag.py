"""How far a query is behind: in events, and in time by the hub's clock."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from eventproc.emulator import EventHubsEmulator
from spark_integration._source import planner
from spark_integration._source import planner as lag
from spark_integration._source.planner import Lag, StreamPlanner
from tests.integration.spark_integration.conftest import options_for, publish, reported
from tests.integration.spark_integration.dated_hub import publish_at

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
START = {"0": 0, "1": 0, "2": 0}
FAST, SLOW = range(100), range(0, 100, 10)
"""Seconds after noon: a hundred events in partition 0, ten in partition 1."""


@pytest.fixture(name="dated")
def _dated(tmp_path):
    """Yield a hub with these events."""
    for partition_id, seconds in {"0": FAST, "1": SLOW}.items():
        publish_at(
            tmp_path / "dated",
            "orders",
            partition_id,
            [NOON + timedelta(seconds=s) for s in seconds],
        )
    with EventHubsEmulator({"orders": 3}, directory=tmp_path / "dated") as emulator:
        yield emulator


def planner_of(hub: EventHubsEmulator) -> StreamPlanner:
    return StreamPlanner(options_for(hub, pollInterval="20ms"))


def lags(subject: StreamPlanner, start: Mapping[str, int], most: int) -> Lag:
    subject.latest(start, most)
    return reported(subject)[1]


def test_the_lag_is_that_after_the_last_planned_batch(dated, monkeypatch):
    """In time it is that of the partition that is furthest behind."""
    monkeypatch.setattr(lag, "LOOK_UP_EVERY_S", 0.0)
    subject = planner_of(dated)

    assert subject.report() is None
    # Each partition gives half of its events: the first one that is left is of second 50.
    assert lags(subject, START, 55) == Lag(events=55, seconds=49.0)
    assert lags(subject, {"0": 90, "1": 2, "2": 0}, 1) == Lag(events=16, seconds=60.0)
    assert lags(subject, {"0": 90, "1": 2, "2": 0}, 1000) == Lag(events=0, seconds=0.0)


def test_the_end_is_asked_for_again_while_a_query_catches_up(own, monkeypatch):
    """Its plan needs no newer one, but its lag would stay that of the first poll."""
    monkeypatch.setattr(planner, "REPORT_AGE_MAX_S", -1.0)
    subject = planner_of(own)
    subject.latest(START, 100)
    publish(own, "2", b"1", b"2")
    ends, found = reported(subject)

    assert ends == {"0": 1000, "1": 1000, "2": 2}
    assert found.events == 1902

    subject.fix_end()
    subject.latest(START, 100)
    publish(own, "2", b"3")

    assert reported(subject)[0] == {"0": 1000, "1": 1000, "2": 2}


def test_a_report_of_a_hub_that_is_away_has_the_ends_that_were_known(own, monkeypatch):
    """Without a time. It raises nothing: Spark would fail the query."""
    monkeypatch.setattr(planner, "REPORT_AGE_MAX_S", -1.0)
    subject = planner_of(own)
    subject.latest(START, 100)
    own.stop()

    assert subject.report() == ({"0": 1000, "1": 1000, "2": 0}, Lag(events=1900, seconds=None))
