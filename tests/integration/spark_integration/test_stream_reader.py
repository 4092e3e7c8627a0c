"""The reader of a stream, as PySpark 4.0 and 4.1 call it: without a start and a limit."""

import inspect

import pytest

from eventproc.emulator import EventHubsEmulator
from eventproc.errors import SourceRejectedError
from spark_integration._columns import SCHEMA
from spark_integration._source.stream_reader import EventProcStreamReader
from tests.integration.spark_integration.conftest import COUNT, options_for, publish

LIMITED = {"maxEventsPerTrigger": "100", "pollInterval": "20ms"}
END = {"0": COUNT, "1": COUNT, "2": 0}


def reader_of(emulator: EventHubsEmulator, **options: str) -> EventProcStreamReader:
    """Return the reader of one start of a query."""
    return EventProcStreamReader(options_for(emulator, **LIMITED, **options), SCHEMA)


def events_of(tasks) -> dict[str, tuple[int, int]]:
    return {r.partition_id: (r.start, r.end) for task in tasks for r in task.ranges}


def test_the_first_batch_has_all_events_and_the_next_ones_are_limited(own):
    """It might be the only one (``AvailableNow``), and Spark does not say where it begins."""
    reader = reader_of(own, startingPosition="earliest")
    first = reader.latestOffset()
    begin = reader.initialOffset()
    planned = events_of(reader.partitions(begin, first))
    publish(own, "2", *[b"new"] * 150)
    second = reader.latestOffset()
    third = reader.latestOffset()

    assert planned == {"0": (0, COUNT), "1": (0, COUNT)}
    assert second["next"] == {**END, "2": 100}
    assert third["next"] == {**END, "2": 150}
    assert reader.latestOffset() == third


def test_a_query_that_is_started_again_begins_where_it_was_and_has_a_first_batch_too(own):
    """Spark shows the last offset to ``partitions`` before it plans."""
    reached = reader_of(own, startingPosition="earliest").initialOffset()
    reader = reader_of(own, startingPosition="earliest")

    assert list(reader.partitions(reached, reached)) == []
    assert reader.latestOffset()["next"] == END


def test_the_first_batch_after_a_repeated_one_is_limited(own):
    """``AvailableNow`` ends after the repeated one."""
    begin = reader_of(own, startingPosition="earliest").initialOffset()
    reached = {**begin, "next": {"0": 10, "1": 10, "2": 0}}
    reader = reader_of(own, startingPosition="earliest")

    assert events_of(reader.partitions(begin, reached)) == {"0": (0, 10), "1": (0, 10)}
    assert reader.latestOffset()["next"] == {"0": 60, "1": 60, "2": 0}


def test_the_end_is_planned_without_looking_at_the_starting_position(own):
    """A batch may begin elsewhere, and the position may be gone."""
    own.expire_before("orders", "0", 500)
    reader = reader_of(own, startingPositions='{"0": 10}')
    end = reader.latestOffset()
    reached = {**end, "next": {"0": 600, "1": 990, "2": 0}}

    assert events_of(reader.partitions(reached, end)) == {"0": (600, COUNT), "1": (990, COUNT)}


def test_a_batch_that_begins_after_the_end_of_the_hub_is_refused(own):
    """The hub was deleted and created again, and its source does not say when."""
    reader = reader_of(own)
    end = reader.latestOffset()
    reached = {**end, "next": {"0": COUNT + 1, "1": 0, "2": 0}}

    with pytest.raises(SourceRejectedError, match="created again"):
        reader.partitions(reached, end)


def test_later_versions_see_a_reader_that_takes_a_start_and_a_limit():
    """They look at the signature."""
    assert list(inspect.signature(EventProcStreamReader.latestOffset).parameters)[1:] == [
        "start",
        "limit",
    ]
