"""Watermarks: each closed window has all its events, although partitions progress differently."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, window

from eventproc.emulator import EventHubsEmulator
from tests.integration.spark_integration.dated_hub import publish_at
from tests.spark.conftest import HUB

pytestmark = pytest.mark.since("4.2")  # before, AvailableNow has one batch

BEGIN = datetime(2026, 1, 31, 8, tzinfo=UTC)
WINDOW_S = 10
SPAN_S = 60
PARTITIONS = 8

Seconds = list[float]
"""Enqueued times of the events of a partition, after ``BEGIN``."""

STEADY: list[Seconds] = [
    [SPAN_S * number / count for number in range(count)]
    for count in range(250, 1001, 750 // (PARTITIONS - 1))
]
"""Partitions with rates from one to four."""

BURSTS: list[Seconds] = [
    sorted(
        [float(second) for second in range(SPAN_S)] + [7.0 * index + n / 100 for n in range(400)]
    )
    for index in range(PARTITIONS)
]
"""One event a second, and a burst at another time in each partition."""


@pytest.fixture(name="connection")
def _connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the connection string of a hub with the events of the parameter."""
    for index, seconds in enumerate(request.param):
        instants = [BEGIN + timedelta(seconds=second) for second in seconds]
        publish_at(tmp_path / "logs", HUB, str(index), instants)
    with EventHubsEmulator({HUB: PARTITIONS}, directory=tmp_path / "logs") as emulator:
        yield emulator.connection_string_for(HUB)


def closed_windows(spark: SparkSession, location: Path, options: dict[str, str]) -> Counter[int]:
    """Count the events of each window that a watermark of ten seconds closes, until all is read.

    The key is the second in which the window begins.
    """
    counts: Counter[int] = Counter()

    def keep(batch: DataFrame, _: int) -> None:
        for begin, count in batch.select(col("window.start").cast("long"), "count").collect():
            counts[begin - int(BEGIN.timestamp())] += count

    (
        spark.readStream.format("eventproc")
        .options(**{"startingPosition": "earliest", "maxEventsPerTrigger": "1000", **options})
        .schema("enqueuedTime timestamp")
        .load()
        .withWatermark("enqueuedTime", "10 seconds")
        .groupBy(window("enqueuedTime", f"{WINDOW_S} seconds"))
        .count()
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(location))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    return counts


def all_windows(hub: list[Seconds]) -> Counter[int]:
    """Return the number of events of each window in the hub."""
    return Counter(int(s // WINDOW_S) * WINDOW_S for seconds in hub for s in seconds)


@pytest.mark.parametrize(
    ("connection", "hub", "align_by"),
    [
        (STEADY, STEADY, "backlog"),
        (STEADY, STEADY, "enqueuedTime"),
        pytest.param(BURSTS, BURSTS, "enqueuedTime", marks=pytest.mark.long),
    ],
    ids=["steady-backlog", "steady-enqueued-time", "bursts-enqueued-time"],
    indirect=["connection"],
)
def test_a_closed_window_has_all_its_events(spark, tmp_path, connection, hub, align_by):
    """A batch has a fifth of the events, and partitions of unequal rates progress equally in
    time."""
    options = {"connectionString": connection, "alignBy": align_by}
    counts = closed_windows(spark, tmp_path / "checkpoint", options)

    assert set(counts) >= {0, 10, 20, 30}
    assert counts == {begin: all_windows(hub)[begin] for begin in counts}


@pytest.mark.night
def test_of_a_million_events_none_is_lost(spark, tmp_path):
    """In twelve batches or more, of eight partitions with rates from one to four."""
    hub = [  # in whole milliseconds, as a hub has them
        [round(SPAN_S * number / count, 3) for number in range(count)]
        for count in range(50_000, 200_001, 150_000 // (PARTITIONS - 1))
    ]
    for index, seconds in enumerate(hub):
        instants = (BEGIN + timedelta(seconds=second) for second in seconds)
        publish_at(tmp_path / "logs", HUB, str(index), instants)
    with EventHubsEmulator({HUB: PARTITIONS}, directory=tmp_path / "logs") as emulator:
        options = {
            "connectionString": emulator.connection_string_for(HUB),
            "alignBy": "enqueuedTime",
            "maxEventsPerTrigger": "100000",
        }
        counts = closed_windows(spark, tmp_path / "checkpoint", options)

    assert sum(map(len, hub)) >= 999_000
    assert set(counts) >= {0, 10, 20, 30}
    assert counts == {begin: all_windows(hub)[begin] for begin in counts}
