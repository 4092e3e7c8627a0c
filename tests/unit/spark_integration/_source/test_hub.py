"""An outage of the hub: what is logged, how long a task waits, and when it gives up."""

import logging
from datetime import timedelta
from types import SimpleNamespace

import pytest

from eventproc._base.logs import ConditionLogger, get_logger
from eventproc._base.retries import Backoff
from eventproc.errors import SourceUnavailableError
from spark_integration._source import hub as module
from spark_integration._source.hub import Outage

SILENCE = SourceUnavailableError("no answer")


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    at = SimpleNamespace(s=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: at.s))
    return at


def outage(patience_s=60.0, maximum_s=5.0):
    """Return an outage of the hub."""
    condition = ConditionLogger(get_logger("eventproc.spark"), "hub_failed", "hub_recovered")
    backoff = Backoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=maximum_s))
    return Outage(condition, timedelta(seconds=patience_s), backoff)


def test_waits_grow_up_to_the_maximum_and_differ(clock):
    """So tasks that lost the hub together do not retry together."""
    first, second = outage(), outage()
    waits = [[each.wait_s(SILENCE) for _ in range(4)] for each in (first, second)]

    for one in waits:
        for wait_s, longest_s in zip(one, (1, 2, 4, 5), strict=True):
            assert longest_s / 2 <= wait_s <= longest_s
    assert waits[0] != waits[1]


def test_no_attempt_begins_after_the_time_limit(clock):
    """Counted from the first failure in a row; a success restarts the count."""
    one = outage(patience_s=10, maximum_s=1)
    begun_s = clock.s
    for _ in range(50):
        clock.s += one.wait_s(SILENCE) or 0.0

    assert 9 <= clock.s - begun_s <= 10
    assert one.wait_s(SILENCE) is None

    one.end()
    assert one.wait_s(SILENCE) is not None


def test_an_outage_is_logged_when_it_begins_and_ends(clock, caplog):
    """With the error, and with the number of failures."""
    caplog.set_level(logging.INFO, "eventproc")
    one = outage()
    for _ in range(3):
        one.wait_s(SILENCE, next=7)
    one.end(failure_count=one.failure_count)
    one.end(failure_count=one.failure_count)

    begun, ended = (vars(record) for record in caplog.records)
    assert (begun["event"], begun["error"], begun["next"]) == ("hub_failed", "no answer", 7)
    assert (ended["event"], ended["failure_count"]) == ("hub_recovered", 3)
