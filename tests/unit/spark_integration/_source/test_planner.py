"""What a stream's planner remembers of its hub."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from eventproc.models import PartitionProperties
from spark_integration._options import parse_source_options
from spark_integration._source import planner as module
from spark_integration._source.planner import REPORT_AGE_MAX_S, Lag, LagMeter, StreamPlanner
from spark_integration._source.planning import PartitionSpan

CONNECTION = (
    "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=a2V5;"
    "EntityPath=orders"
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


class Hub:
    """A hub of one partition that has so many events."""

    name = "n/orders"
    created_at: datetime | None = None
    count = 10

    def partition_ends(self) -> dict[str, PartitionProperties]:
        end = PartitionProperties(
            partition_id="0",
            beginning_sequence_number=0,
            last_enqueued_sequence_number=self.count - 1,
            last_enqueued_offset="1",
            last_enqueued_time=NOON,
            is_empty=False,
        )
        return {"0": end}

    partition_ends_now = partition_ends

    def first_events_now(self, firsts: Any) -> Any:
        return {partition_id: SimpleNamespace(enqueued_time=NOON) for partition_id in firsts}


def planner_of(hub: Any, **options: str) -> StreamPlanner:
    return StreamPlanner(
        parse_source_options({"connectionString": CONNECTION, **options}, is_stream=True), hub
    )


@pytest.mark.parametrize(
    ("noted", "said", "known"),
    [
        (None, None, None),
        (NOON, None, NOON),
        (None, NOON, NOON),
        (NOON, LATER, LATER),
        (LATER, NOON, LATER),
    ],
)
def test_the_later_time_of_creation_counts(noted, said, known):
    """After a fail-over another region may name an earlier one."""
    hub = Hub()
    hub.created_at = said

    assert planner_of(hub).hub_created_at(noted) == known


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_report_asks_the_hub_again_unless_the_end_is_fixed(is_fixed, monkeypatch):
    """``AvailableNow`` reads what the hub had at its beginning, and ends."""
    at = SimpleNamespace(s=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: at.s))
    hub = Hub()
    planner = planner_of(hub)
    planner.all_available()
    if is_fixed:
        planner.fix_end()
    planner.latest({"0": 0}, 5)
    hub.count = 20
    at.s += REPORT_AGE_MAX_S + 1
    report = planner.report()

    assert report is not None
    assert report[0] == {"0": 10 if is_fixed else 20}
    assert planner.latest({"0": 5}, None) == {"0": 10 if is_fixed else 20}


@pytest.mark.parametrize(("is_fixed", "end"), [(False, 8), (True, 10)])
def test_a_batch_waits_for_more_events_unless_the_end_is_fixed(is_fixed, end, monkeypatch):
    """``AvailableNow`` ends with a batch of what is left, however few events that are."""
    at = SimpleNamespace(s=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: at.s))
    planner = planner_of(Hub(), minOffsetsPerTrigger="5")
    planner.all_available()
    if is_fixed:
        planner.fix_end()
    at.s += 60

    assert planner.latest({"0": 8}, None) == {"0": end}


def test_the_age_of_a_lag_is_looked_up_from_time_to_time_and_anew_after_catching_up():
    """A look-up opens receivers. The events are counted each time; nothing is left: zero."""
    hub: Any = Hub()
    meter = LagMeter(hub)

    def lag(position: int, end: int, seconds: float) -> Lag:
        newest = NOON + timedelta(seconds=seconds)
        spans = {"0": PartitionSpan(first=0, next=end, last_enqueued_time=newest)}
        return meter.lag({"0": position}, spans)

    assert lag(0, 10, 5) == Lag(events=10, seconds=5.0)
    assert lag(4, 10, 7) == Lag(events=6, seconds=5.0)
    assert lag(10, 10, 8) == Lag(events=0, seconds=0.0)
    assert lag(10, 12, 9) == Lag(events=2, seconds=9.0)
