"""A compacted hub, which keeps the newest event of each key: not every missing number is a loss."""

from collections.abc import Iterator

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator, HubConfiguration
from spark_integration import EventsLostError
from spark_integration._options import SourceOptions, parse_source_options
from spark_integration._source.batch_reader import plan
from spark_integration._source.planner import StreamPlanner
from spark_integration._source.planning import EventRange
from spark_integration._source.reading import read_ranges

HUB = "latest"


@pytest.fixture(name="hub")
def _hub() -> Iterator[EventHubsEmulator]:
    """Yield a hub of one partition, in which event 0 is followed by events 16 to 19."""
    with EventHubsEmulator([HubConfiguration(HUB, 1, is_compacted=True)]) as emulator:
        publish(emulator, "seldom", *(f"often {number % 4}" for number in range(19)))
        yield emulator


def publish(emulator: EventHubsEmulator, *keys: str | None) -> None:
    with EventHubProducerClient.from_connection_string(
        emulator.connection_string_for(HUB)
    ) as producer:
        for key in keys:
            producer.send_event(EventData(b"x"), partition_key=key)


def options_for(emulator: EventHubsEmulator, **options: str) -> SourceOptions:
    given = {"connectionString": emulator.connection_string_for(HUB), **options}
    return parse_source_options(given, is_stream=True)


def numbers(options: SourceOptions, begin: int, end: int) -> list[int]:
    planned = EventRange(partition_id="0", start=begin, end=end)
    return [e.sequence_number for _, events in read_ranges(options, [planned]) for e in events]


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0, 20, [0, 16, 17, 18, 19]),
        (0, 10, [0]),
        (3, 10, []),
        (3, 17, [16]),
        (17, 19, [17, 18]),
    ],
)
def test_a_number_that_is_missing_after_the_first_event_is_no_loss(
    hub, caplog, begin, end, expected
):
    """By default, and wherever a batch begins and ends."""
    assert numbers(options_for(hub), begin, end) == expected
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == []


def test_a_setting_says_whether_what_is_missing_before_the_first_event_is_lost(hub, caplog):
    """Retention may have deleted it, or a later event superseded it."""
    publish(hub, "seldom")
    strict, compacted = options_for(hub), options_for(hub, compacted="true")
    for read in (
        lambda: StreamPlanner(strict).latest({"0": 0}, None),
        lambda: numbers(strict, 0, 21),
        lambda: plan(batch_options(hub)),
    ):
        with pytest.raises(EventsLostError, match=r"events 0 to 15 .* then set compacted=true"):
            read()

    assert StreamPlanner(compacted).latest({"0": 0}, None) == {"0": 21}
    assert numbers(compacted, 0, 21) == [16, 17, 18, 19, 20]
    assert plan(batch_options(hub, compacted="true")) == [
        EventRange(partition_id="0", start=16, end=21)
    ]
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == []


def batch_options(emulator: EventHubsEmulator, **options: str) -> SourceOptions:
    given = {
        "connectionString": emulator.connection_string_for(HUB),
        "startingPosition": "0",
        **options,
    }
    return parse_source_options(given, is_stream=False)


@pytest.mark.parametrize("fails", [True, False])
def test_events_that_retention_deletes_between_two_gaps_are_lost(hub, caplog, fails):
    """Although the hub had gaps before, and is asked again only at the end of the range."""
    with EventHubProducerClient.from_connection_string(hub.connection_string_for(HUB)) as producer:
        for _ in range(4):
            producer.send_batch([EventData(b"x")] * 4995)
    options = options_for(hub, prefetchCount="20", failOnDataLoss=str(fails).lower())
    planned = EventRange(partition_id="0", start=0, end=20_000)
    reading = read_ranges(options, [planned])
    seen = [e.sequence_number for e in next(reading)[1]]
    hub.expire_before(HUB, "0", 19_000)
    if fails:
        with pytest.raises(EventsLostError, match=r"events \d+ to 18999 of partition '0'"):
            list(reading)
        return
    seen += [e.sequence_number for _, events in reading for e in events]
    lost = [vars(r) for r in caplog.records if vars(r).get("event") == "planned_events_missing"]

    assert seen[:2] == [0, 16]
    assert seen[-1000:] == list(range(19_000, 20_000))
    assert len(seen) + lost[-1]["missing_count"] == 20_000 - 15
