"""Filters that Spark pushes to a batch read (PySpark 4.1 and newer)."""

import pytest

from tests.spark.conftest import COUNT, HUB, expected, places

pytestmark = pytest.mark.since("4.1")

SWITCH = "spark.sql.python.filterPushdown.enabled"


@pytest.mark.parametrize(
    ("where", "found", "tasks"),
    [
        ("partition = '1' and sequenceNumber > 150", expected("1", 151, COUNT), 1),
        ("partition in ('0', '2') and sequenceNumber < 3", expected("0", 0, 3), 1),
        ("sequenceNumber = 7 or partition = '1'", [("0", 7), *expected("1", 0, COUNT)], 2),
        ("enqueuedTime > current_timestamp() + interval 1 hour", [], 1),
        ("enqueuedTime > timestamp'2020-01-01' and body = '9'", [("0", 9), ("1", 9)], 2),
    ],
)
def test_a_filter_gives_the_same_rows_whether_it_is_pushed_or_not(
    spark, emulator, where, found, tasks
):
    """Pushed, it leaves tasks out: a partition without events to read has none."""
    hub = {"connectionString": emulator.connection_string_for(HUB)}
    plain = spark.read.format("eventproc").options(**hub).load().where(where)
    without = places(plain.collect())
    spark.conf.set(SWITCH, "true")
    try:
        pushed = spark.read.format("eventproc").options(**hub).load().where(where)
        rows, task_count = places(pushed.collect()), pushed.rdd.getNumPartitions()
    finally:
        spark.conf.unset(SWITCH)

    assert (without, rows, task_count) == (found, found, tasks)
