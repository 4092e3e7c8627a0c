"""``spark.readStream``: each batch has exactly the planned events, whatever fails."""

import json
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from eventproc.emulator import EventHubsEmulator
from tests.spark.conftest import COUNT, HUB, expected, publish

EVERYTHING = expected("0", 0, COUNT) + expected("1", 0, COUNT)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for an effect of a query."""
    give_up_at = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


@pytest.mark.since("4.2")
def test_available_now_reads_all_events_in_batches_of_the_requested_size(stream):
    """Each event is in one batch, partitions have equal shares, and the progress shows what is
    left."""
    reading = stream(startingPosition="earliest", maxEventsPerTrigger="250")
    query = reading.start(availableNow=True)
    query.awaitTermination()
    progress = [entry.sources[0] for entry in query.recentProgress]

    assert reading.batches == {
        0: [expected("0", 0, 125) + expected("1", 0, 125)],
        1: [expected("0", 125, 200) + expected("1", 125, 200)],
    }
    assert [json.loads(entry.endOffset)["next"] for entry in progress] == [
        {"0": 125, "1": 125, "2": 0},
        {"0": 200, "1": 200, "2": 0},
    ]
    assert json.loads(progress[0].latestOffset)["next"] == {"0": 200, "1": 200, "2": 0}
    lags = [json.loads(entry.latestOffset)["lag"] for entry in progress]
    assert [lag["events"] for lag in lags] == [150, 0]
    assert lags[0]["seconds"] >= lags[1]["seconds"] == 0


@pytest.mark.since("4.2")
def test_a_restart_after_a_crash_reads_the_planned_ranges_again(stream, emulator):
    """The driver crashed before its commit; new events and partitions do not change the batch."""
    reading = stream(startingPosition="earliest", maxEventsPerTrigger="300", maxTasks="1")
    reading.run()
    died_in = reading.lose_last_commit()
    emulator.add_partitions(HUB, 1)
    publish(emulator, "3", b"new")
    publish(emulator, "1", b"more")
    reading.options |= {"maxEventsPerTrigger": "1000", "maxTasks": "7"}
    reading.run()

    assert died_in == 1
    assert reading.batches[1] == [expected("0", 150, 200) + expected("1", 150, 200)] * 2
    assert reading.batches[2] == [[("1", COUNT), ("3", 0)]]
    assert reading.seen() == sorted([*EVERYTHING, ("1", COUNT), ("3", 0)])


def test_a_query_that_is_started_again_reads_everything_and_keeps_its_limit(stream, emulator):
    """With PySpark 4.0 and 4.1 ``AvailableNow`` and the first batch of a start have no limit."""
    reading = stream(startingPosition="earliest", maxEventsPerTrigger="150", pollInterval="100ms")
    reading.run()
    publish(emulator, "2", *[b"new"] * 400)
    reading.run()

    assert reading.seen() == EVERYTHING + expected("2", 0, 400)

    query = reading.start(processingTime="0 seconds")
    wait_until(lambda: "Waiting" in query.status["message"])
    publish(emulator, "2", *[b"newer"] * 400)
    wait_until(lambda: ("2", 799) in reading.seen())
    query.stop()
    sizes = [len(reading.batches[number][-1]) for number in sorted(reading.batches)]

    assert sizes[-3:] == [150, 150, 100]
    assert reading.seen() == EVERYTHING + expected("2", 0, 800)


def test_a_batch_whose_sink_failed_is_read_again_unchanged(stream):
    """Spark has the ranges in its offset log before anything is read."""
    reading = stream(startingPosition="earliest")
    reading.fails_in = {0}
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        reading.run()
    reading.fails_in = set()
    reading.run()

    assert reading.batches == {0: [EVERYTHING, EVERYTHING]}


def test_a_task_whose_worker_is_killed_reads_the_same_range_again(stream, emulator, shared_folder):
    """SIGKILL in the middle of a range: Spark retries the task."""
    (shared_folder / "hub").write_text(emulator.connection_string_for(HUB))
    reading = stream(startingPosition="earliest", prefetchCount="20")
    del reading.options["connectionString"]
    reading.options["sourceRecipe"] = "faulty_hub:source_killed_once"
    reading.run()

    assert reading.batches == {0: [EVERYTHING]}
    assert (shared_folder / "killed").exists()


def test_a_running_query_reads_new_events_and_new_partitions(stream, emulator):
    """By default a query begins with new events, also in partitions that were empty."""
    reading = stream(pollInterval="100ms")
    query = reading.start(processingTime="0 seconds")
    wait_until(lambda: "Waiting" in query.status["message"])
    publish(emulator, "2", b"first")
    wait_until(lambda: ("2", 0) in reading.seen())
    emulator.add_partitions(HUB, 1)
    publish(emulator, "3", b"first", b"second")
    wait_until(lambda: ("3", 1) in reading.seen())
    query.stop()

    assert reading.seen() == [("2", 0), ("3", 0), ("3", 1)]


def test_a_query_survives_a_short_outage_and_can_be_stopped_during_one(stream, emulator):
    """The query continues when the hub is back, and ``stop`` works while it is not."""
    reading = stream(startingPosition="earliest", pollInterval="100ms")
    query = reading.start(processingTime="0 seconds")
    wait_until(lambda: reading.seen() == EVERYTHING)
    emulator.stop()
    time.sleep(1)
    emulator.start()
    publish(emulator, "2", b"after")
    wait_until(lambda: ("2", 0) in reading.seen())
    emulator.stop()
    time.sleep(0.5)
    query.stop()

    assert query.exception() is None
    assert reading.seen() == sorted([*EVERYTHING, ("2", 0)])


@pytest.mark.long
def test_an_outage_beyond_operation_timeout_fails_the_query(stream, emulator):
    """The query ends with ``SourceUnavailableError``; a restart reads the rest."""
    reading = stream(startingPosition="earliest", operationTimeout="300ms", pollInterval="100ms")
    query = reading.start(processingTime="0 seconds")
    wait_until(lambda: reading.seen() == EVERYTHING)
    emulator.stop()
    with pytest.raises(StreamingQueryException, match="SourceUnavailableError"):
        query.awaitTermination(30)
    emulator.start()
    publish(emulator, "2", b"after")
    reading.run()

    assert reading.seen() == sorted([*EVERYTHING, ("2", 0)])


def test_events_deleted_by_retention_fail_the_query_or_are_skipped(stream, emulator):
    """With ``failOnDataLoss=false`` the query continues at the first event that is left."""
    reading = stream(startingPositions='{"0": 0, "1": 0}')
    reading.run()
    publish(emulator, "0", *[b"more"] * 50)
    emulator.expire_before(HUB, "0", COUNT + 20)
    with pytest.raises(StreamingQueryException, match=r"events 200 to 219 of partition '0'"):
        reading.run()
    reading.options["failOnDataLoss"] = "false"
    reading.run()

    assert reading.seen() == sorted([*EVERYTHING, *expected("0", COUNT + 20, COUNT + 50)])


def test_an_offset_log_of_another_hub_is_refused(stream):
    """The query fails, because the sequence numbers belong to other events."""
    reading = stream(startingPosition="earliest")
    reading.run()
    with EventHubsEmulator({HUB: 1}) as another:
        reading.options["connectionString"] = another.connection_string_for(HUB)
        with pytest.raises(StreamingQueryException, match="checkpointLocation of its own"):
            reading.run()


def test_an_ending_position_is_refused_for_a_stream(stream):
    """A stream has no end; nothing is read."""
    reading = stream(startingPosition="earliest", endingPosition="5")
    with pytest.raises(PySparkException, match="endingPosition has no effect on a stream"):
        reading.run()

    assert reading.batches == {}


def test_a_task_waits_for_slow_deliveries(stream, emulator):
    """``receiverTimeout`` counts only the time without any event."""
    emulator.delay_deliveries(timedelta(milliseconds=200), HUB, "0")
    reading = stream(startingPosition="earliest", prefetchCount="50", receiverTimeout="2s")
    reading.run()

    assert reading.batches == {0: [EVERYTHING]}
