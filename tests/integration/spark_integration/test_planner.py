"""Where micro-batches end: while a hub grows, is unavailable, loses events, or is another one."""

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from eventproc.emulator import EventHubsEmulator
from eventproc.errors import SourceRejectedError, SourceUnavailableError
from spark_integration import EventsLostError
from spark_integration._source.hub import Hub
from spark_integration._source.planner import Lag, StreamPlanner
from tests.integration.spark_integration.conftest import COUNT, options_for, publish, reported
from tests.integration.spark_integration.dated_hub import publish_at

HUB = "orders"
QUICK = {"pollInterval": "20ms"}
START = {"0": 0, "1": 0, "2": 0}
END = {"0": COUNT, "1": COUNT, "2": 0}


def test_batches_continue_each_other_up_to_the_end(own):
    """After that they are empty, until an event is published."""
    planner = StreamPlanner(options_for(own, startingPosition="earliest", **QUICK))
    start = planner.first()
    half = planner.latest(start, COUNT)
    whole = planner.latest(half, COUNT)
    nothing = planner.latest(whole, COUNT)
    publish(own, "2", b"new")

    assert start == START
    assert half == {"0": COUNT // 2, "1": COUNT // 2, "2": 0}
    assert (whole, nothing) == (END, END)
    assert planner.latest(nothing, COUNT) == {**END, "2": 1}
    assert planner.report() == ({**END, "2": 1}, Lag(events=0, seconds=0.0))


def test_the_hub_is_not_asked_while_a_full_batch_is_left(own, caplog):
    """The next end is computed from the last answer of the hub."""
    planner = StreamPlanner(options_for(own, pollInterval="30s"))
    planner.latest(START, 10)
    own.stop()  # a request would fail and log a warning

    assert planner.latest({**START, "0": COUNT // 2}, 30) == {"0": COUNT // 2 + 10, "1": 20, "2": 0}
    assert caplog.records == []


def test_an_idle_query_waits_before_it_asks_again(own):
    """Spark asks for the latest offset a hundred times a second; the hub is asked once in
    ``pollInterval``."""
    planner = StreamPlanner(options_for(own, pollInterval="300ms"))
    planner.latest(END, None)
    asked_at = time.monotonic()
    planner.latest(END, None)

    assert time.monotonic() - asked_at > 0.1


def test_the_default_limit_is_ten_thousand_events_for_each_partition(own):
    """The limit of a hub of three partitions is 30,000; ``maxEventsPerTrigger`` replaces it."""
    assert StreamPlanner(options_for(own)).events_max() == 30_000
    assert StreamPlanner(options_for(own, maxEventsPerTrigger="7")).events_max() == 7


def test_a_batch_waits_for_a_least_number_of_events(own):
    """The first one does not wait; the hub is asked again meanwhile. At a fixed end none waits."""
    planner = StreamPlanner(options_for(own, minOffsetsPerTrigger="2", **QUICK))

    assert planner.latest({**END, "0": COUNT - 1}, None) == END

    publish(own, "2", b"one")

    assert planner.latest(END, None) == END
    assert reported(planner)[0] == {**END, "2": 1}

    publish(own, "2", b"two")

    assert planner.latest(END, None) == {**END, "2": 2}

    publish(own, "2", b"three")
    planner.fix_end()

    assert planner.latest({**END, "2": 2}, None) == {**END, "2": 3}


def test_a_batch_does_not_wait_longer_than_the_delay(own):
    """Then it has what there is."""
    options = {"minOffsetsPerTrigger": "1000", "maxTriggerDelay": "200ms", **QUICK}
    planner = StreamPlanner(options_for(own, **options))
    planner.latest({**END, "0": COUNT - 1}, None)
    publish(own, "2", b"one")
    give_up_at = time.monotonic() + 20
    while planner.latest(END, None) == END:
        assert time.monotonic() < give_up_at

    assert reported(planner)[0] == {**END, "2": 1}


def test_batches_do_not_pass_a_fixed_end(own):
    """Events that come later belong to the next run."""
    planner = StreamPlanner(options_for(own, startingPosition="earliest", **QUICK))
    planner.fix_end()
    publish(own, "2", b"too late")

    assert planner.latest(START, None) == END
    assert planner.latest(END, None) == END


def test_a_query_from_latest_to_a_fixed_end_is_empty(own):
    """Even if an event is published between the two requests."""
    planner = StreamPlanner(options_for(own, startingPosition="latest", **QUICK))
    planner.fix_end()
    publish(own, "2", b"between")
    start = planner.first()

    assert start == {**END, "2": 1}
    assert planner.latest(start, None) == start


def test_batches_are_empty_during_an_outage(own, caplog):
    """Its beginning and its end are logged once each; no call waits for long."""
    caplog.set_level("INFO")
    planner = StreamPlanner(options_for(own, **QUICK))
    planner.latest(END, None)
    own.stop()
    for _ in range(3):
        assert planner.latest(END, None) == END
    own.start()
    publish(own, "2", b"after")
    give_up_at = time.monotonic() + 20
    while planner.latest(END, None) == END and time.monotonic() < give_up_at:
        pass

    assert planner.latest(END, None) == {**END, "2": 1}
    logged = [vars(record).get("event") for record in caplog.records]
    logged = [event for event in logged if event in {"hub_failed", "hub_recovered"}]
    assert logged == ["hub_failed", "hub_recovered"]


def test_an_outage_beyond_operation_timeout_is_an_error(own):
    """``latest`` raises ``SourceUnavailableError`` once the hub was away for that long."""
    planner = StreamPlanner(options_for(own, operationTimeout="200ms", **QUICK))
    own.stop()

    def ask_for_ever() -> None:
        while True:
            planner.latest(END, None)

    with pytest.raises(SourceUnavailableError):
        ask_for_ever()


def test_deleted_events_are_an_error_or_logged_once(own, caplog):
    """With ``failOnDataLoss=false`` they are logged once, even if a batch is planned several
    times."""
    own.expire_before(HUB, "0", 40)
    with pytest.raises(EventsLostError, match="events 0 to 39 of partition '0'"):
        StreamPlanner(options_for(own)).latest(START, None)
    lenient = StreamPlanner(options_for(own, failOnDataLoss="false"))

    assert lenient.latest(START, 10) == {"0": 45, "1": 5, "2": 0}
    assert lenient.latest(START, 10) == {"0": 45, "1": 5, "2": 0}
    assert [
        r.missing_count for r in caplog.records if vars(r).get("event") == "events_expired"
    ] == [40]


def test_a_hub_that_ends_before_the_offset_is_refused(own):
    """The hub was created again, so its numbers belong to other events."""
    planner = StreamPlanner(options_for(own, failOnDataLoss="false"))
    with pytest.raises(SourceRejectedError, match="created again"):
        planner.latest({**END, "2": 5}, None)


# --- aligned by enqueued time ---------------------------------------------------------------------

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
OFFSETS_MS = {"0": range(0, 600_000, 100), "1": range(0, 600_000, 1000), "2": [0, *[300_000] * 50]}
"""Milliseconds after noon: ten events a second, one a second, and a burst."""


@pytest.fixture(name="dated")
def _dated(tmp_path):
    """Yield a hub whose partitions have the events of ``OFFSETS_MS``, and one that is empty."""
    for partition_id, offsets_ms in OFFSETS_MS.items():
        instants = [NOON + timedelta(milliseconds=ms) for ms in offsets_ms]
        publish_at(tmp_path / "dated", HUB, partition_id, instants)
    with EventHubsEmulator({HUB: 4}, directory=tmp_path / "dated") as emulator:
        yield emulator


ALIGNED = {"alignBy": "enqueuedTime", "startingPosition": "earliest", **QUICK}


def times_of(start, end):
    """Return the enqueued times of the events between two offsets, in milliseconds after noon."""
    return [at for p, offsets_ms in OFFSETS_MS.items() for at in offsets_ms[start[p] : end[p]]]


def test_aligned_batches_end_at_one_enqueued_time(dated):
    """Partitions of any rate: no event is in two batches, and no batch is above the limit."""
    planner = StreamPlanner(options_for(dated, **ALIGNED))
    end = planner.first()
    batches = []
    while (following := planner.latest(end, 1000)) != end:
        batches.append(times_of(end, following))
        end = following

    assert end == {**{p: len(offsets_ms) for p, offsets_ms in OFFSETS_MS.items()}, "3": 0}
    assert all(max(one) < min(next_one) for one, next_one in pairwise(batches))
    assert all(0 < len(batch) <= 1000 for batch in batches)
    assert len(batches) <= 9


def test_an_aligned_batch_below_the_limit_asks_for_no_event(dated, monkeypatch):
    """Alignment sends no request for a query that keeps up."""
    monkeypatch.setattr(Hub, "first_events_now", None)
    planner = StreamPlanner(options_for(dated, **ALIGNED))

    assert planner.latest(planner.first(), 10_000)["0"] == len(OFFSETS_MS["0"])


def test_at_steady_rates_each_aligned_batch_asks_once(dated, monkeypatch):
    """Answers are reused for the next batch."""
    asked = []
    first_events_now = Hub.first_events_now

    def counting(hub, positions):
        asked.append(positions)
        return first_events_now(hub, positions)

    monkeypatch.setattr(Hub, "first_events_now", counting)
    planner = StreamPlanner(options_for(dated, **ALIGNED))
    end = planner.latest(planner.first(), 1000)
    at_first = len(asked)
    planner.latest(end, 1000)

    assert at_first == 2  # when the first events were enqueued, and a guess
    assert len(asked) == 3


def test_an_outage_during_alignment_gives_empty_batches_then_an_error(dated):
    """Links are refused, but requests for ends answered; it fails after ``operationTimeout``."""
    planner = StreamPlanner(options_for(dated, operationTimeout="400ms", **ALIGNED))
    start = planner.first()
    dated.refuse_links(timedelta(minutes=1))

    assert planner.latest(start, 1000) == start

    def ask_for_ever() -> None:
        while True:
            planner.latest(start, 1000)

    with pytest.raises(SourceUnavailableError):
        ask_for_ever()


def test_an_outage_during_alignment_does_not_end_a_query_up_to_a_fixed_end(dated):
    """For Spark, a batch without events is its end: the hub is asked until it answers."""
    planner = StreamPlanner(options_for(dated, **ALIGNED))
    start = planner.first()
    planner.fix_end()
    dated.refuse_links(timedelta(seconds=2))

    assert planner.latest(start, 1000) != start


def test_an_aligned_batch_begins_after_deleted_events(dated):
    """The oldest event that still exists gives the partition's time."""
    dated.expire_before(HUB, "0", 3000)
    planner = StreamPlanner(options_for(dated, failOnDataLoss="false", **ALIGNED))
    end = planner.latest(dict.fromkeys("0123", 0), 300)

    assert end["0"] == 0
    assert end["2"] == 1
    assert 0 < end["1"] <= 300
