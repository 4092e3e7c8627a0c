"""What the driver asks a hub; an outage: what is logged, how long it lasts, when to give up."""

import json
import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from eventproc._base.logs import ConditionLogger, get_logger
from eventproc._base.retries import Backoff
from eventproc.errors import SourceUnavailableError
from eventproc.sources.eventhubs import EventHubOptions
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from spark_integration._options import parse_source_options
from spark_integration._source import hub as module
from spark_integration._source.hub import Hub, Outage

SILENCE = SourceUnavailableError("no answer")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
HUB = MemoryHub(2, clock=lambda: NOON)
"""Partition 0 had events, of which retention has left none; partition 1 has one."""

for _ in range(3):
    HUB.publish(b"old", partition_id="0")
HUB.trim("0", before=3)
HUB.publish(b"kept", partition_id="1")


def make_source(options: EventHubOptions) -> MemoryEventSource:
    """Make a source, as a user's recipe does."""
    return MemoryEventSource(HUB)


@pytest.mark.parametrize(
    "position",
    [
        {"enqueuedTime": (NOON - timedelta(hours=1)).isoformat()},
        {"enqueuedTime": NOON.isoformat()},
        {"offset": "0"},
    ],
    ids=["earlier", "at the newest event", "offset"],
)
def test_no_event_is_waited_for_in_a_partition_that_retention_has_emptied(position):
    """The query begins with the next event, and does not fail because none comes."""
    options = parse_source_options(
        {
            "sourceRecipe": f"{__name__}:make_source",
            "startingPositions": json.dumps({"0": position, "1": position}),
            "operationTimeout": "10ms",
            "receiverTimeout": "10ms",
        },
        is_stream=True,
    )
    hub = Hub(options)

    assert hub.find(options.starting, hub.partition_ends()) == {"0": 3, "1": 0}


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
