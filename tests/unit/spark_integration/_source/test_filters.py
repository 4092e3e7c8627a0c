"""Filters of a query, as bounds of what is read. Spark evaluates them all again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from spark_integration._source import filters
from spark_integration._source.planning import Bounds

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TIME, NUMBER, PARTITION = ("enqueuedTime",), ("sequenceNumber",), ("partition",)


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ([], {}),
        ([EqualTo(PARTITION, "1")], {"partition_ids": {"1"}}),
        ([In(PARTITION, ("1", None, "2"))], {"partition_ids": {"1", "2"}}),
        ([In(PARTITION, ("1", "2")), EqualTo(PARTITION, "2")], {"partition_ids": {"2"}}),
        ([EqualTo(NUMBER, 7)], {"first": 7, "last": 7}),
        ([In(NUMBER, (9, 7))], {"first": 7, "last": 9}),
        ([GreaterThan(NUMBER, 7), LessThanOrEqual(NUMBER, 9)], {"first": 7, "last": 9}),
        ([GreaterThanOrEqual(NUMBER, 7), GreaterThan(NUMBER, 8)], {"first": 8}),
        ([LessThan(NUMBER, 7), LessThan(NUMBER, 9)], {"last": 7}),
        ([GreaterThanOrEqual(TIME, NOON)], {"since": NOON - MINUTE}),
        ([LessThan(TIME, NOON)], {"until": NOON + MINUTE}),
        (
            [LessThan(TIME, datetime.max.replace(tzinfo=UTC))],
            {"until": datetime.max.replace(tzinfo=UTC)},
        ),
        (
            [GreaterThan(TIME, datetime.min.replace(tzinfo=UTC))],
            {"since": datetime.fromtimestamp(0, UTC)},
        ),
        ([Not(EqualTo(NUMBER, 7)), IsNotNull(TIME), LessThan(PARTITION, "2")], {}),
        ([EqualTo(("properties", "kind"), "1"), EqualTo(("partitionKey",), "1")], {}),
    ],
)
def test_filters_become_bounds(given, bounds):
    assert filters.bounds_of(given) == Bounds(**bounds)


def test_spark_evaluates_every_filter_again():
    given = [EqualTo(NUMBER, 7), IsNotNull(TIME)]
    options: Any = None  # none are read here

    assert list(filters.FilteringReader(options, None).pushFilters(given)) == given
