"""Where micro-batches end: while a hub grows, is gone, loses events, or is another one."""

import time

import pytest

from eventproc.errors import SourceRejectedError, SourceUnavailableError
from spark_integration import EventsLostError
from spark_integration.planner import StreamPlanner
from tests.integration.spark_integration.conftest import COUNT, options_for, publish

HUB = "orders"
QUICK = {"pollInterval": "20ms"}
START = {"0": 0, "1": 0, "2": 0}
END = {"0": COUNT, "1": COUNT, "2": 0}


def test_batches_follow_each_other_up_to_the_end(own):
    """Then there is nothing new, until there is."""
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
    assert planner.end() == {**END, "2": 1}


def test_the_hub_is_not_asked_while_there_is_more_to_read_than_a_batch_takes(own, caplog):
    """What it said last is enough."""
    planner = StreamPlanner(options_for(own, pollInterval="30s"))
    planner.latest(START, 10)
    own.stop()  # whoever asks now gets no answer, and says so

    assert planner.latest({**START, "0": 10}, 30) == {"0": 25, "1": 15, "2": 0}
    assert caplog.records == []


def test_an_idle_query_waits_before_it_asks_again(own):
    """Spark asks a hundred times a second."""
    planner = StreamPlanner(options_for(own, pollInterval="300ms"))
    planner.latest(END, None)
    asked_at = time.monotonic()
    planner.latest(END, None)

    assert time.monotonic() - asked_at > 0.1


def test_a_limit_by_default_grows_with_the_hub(own):
    """Ten thousand for each partition."""
    assert StreamPlanner(options_for(own)).events_max() == 30_000
    assert StreamPlanner(options_for(own, maxEventsPerTrigger="7")).events_max() == 7


def test_a_fixed_end_is_not_passed(own):
    """What comes later belongs to the next run; also where a query begins with what is new."""
    planner = StreamPlanner(options_for(own, startingPosition="earliest", **QUICK))
    planner.fix_end()
    publish(own, "2", b"too late")

    assert planner.latest(START, None) == END
    assert planner.latest(END, None) == END


def test_latest_and_a_fixed_end_agree(own):
    """Though an event came between the two questions."""
    planner = StreamPlanner(options_for(own, startingPosition="latest", **QUICK))
    planner.fix_end()
    publish(own, "2", b"between")
    start = planner.first()

    assert start == {**END, "2": 1}
    assert planner.latest(start, None) == start


def test_an_outage_is_no_news(own, caplog):
    """Told once at its beginning and once at its end; no call waits for long."""
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
    told = [r.msg for r in caplog.records if r.msg in {"hub_unavailable", "hub_recovered"}]
    assert told == ["hub_unavailable", "hub_recovered"]


def test_an_outage_that_lasts_is_an_error(own):
    """After operationTimeout, so that somebody hears of it."""
    planner = StreamPlanner(options_for(own, operationTimeout="200ms", **QUICK))
    own.stop()

    def ask_for_ever() -> None:
        while True:
            planner.latest(END, None)

    with pytest.raises(SourceUnavailableError):
        ask_for_ever()


def test_what_retention_took_is_an_error_or_told_once(own, caplog):
    """A batch may be planned several times."""
    own.expire_before(HUB, "0", 40)
    with pytest.raises(EventsLostError, match="events 0 to 39 of partition '0'"):
        StreamPlanner(options_for(own)).latest(START, None)
    lenient = StreamPlanner(options_for(own, failOnDataLoss="false"))

    assert lenient.latest(START, 10) == {"0": 45, "1": 5, "2": 0}
    assert lenient.latest(START, 10) == {"0": 45, "1": 5, "2": 0}
    assert [r.missing_count for r in caplog.records if r.msg == "events_expired"] == [40]


def test_a_hub_that_ends_before_the_offset_is_refused(own):
    """It was created anew; its numbers mean other events."""
    planner = StreamPlanner(options_for(own, failOnDataLoss="false"))
    with pytest.raises(SourceRejectedError, match="created anew"):
        planner.latest({**END, "2": 5}, None)
