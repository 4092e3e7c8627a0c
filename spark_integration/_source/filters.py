"""Filters of a query that make a batch read smaller: on time, sequence number and partition.

Rule: Spark evaluates every filter itself. Here filters only leave out events that none of them
could let through, so it is enough to be nearly exact.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from spark_integration._source.batch_reader import EventProcReader
from spark_integration._source.planning import Bounds

CLOCK_STEP_MAX: Final = timedelta(minutes=1)
"""How far enqueued times of a partition may go back, when another machine of the service takes the
partition over: events are looked for so much earlier and later."""

_EARLIEST: Final = datetime.fromtimestamp(0, UTC) + CLOCK_STEP_MAX
_LATEST: Final = datetime.max.replace(tzinfo=UTC) - CLOCK_STEP_MAX


class FilteringReader(EventProcReader):
    """Reads only the events that the filters of a query may let through."""

    def pushFilters(self, filters: Sequence[Filter]) -> Iterable[Filter]:
        """Note the filters, and return those that Spark has to evaluate: all."""
        self._bounds = bounds_of(filters)
        return filters


def bounds_of(filters: Iterable[Filter]) -> Bounds:
    """Return the bounds of events that all filters may let through."""
    return reduce(_narrowed, filters, Bounds())


def _narrowed(bounds: Bounds, given: Filter) -> Bounds:
    match given:
        case EqualTo(attribute=(name,), value=value):
            values = {value}
        case In(attribute=(name,), value=several):
            values = {value for value in several if value is not None}
        case (
            GreaterThan(attribute=(name,), value=least)
            | GreaterThanOrEqual(attribute=(name,), value=least)
        ):
            return _between(bounds, name, least, None)
        case (
            LessThan(attribute=(name,), value=most) | LessThanOrEqual(attribute=(name,), value=most)
        ):
            return _between(bounds, name, None, most)
        case _:
            return bounds
    if name == "partition":
        return bounds.narrowed(partition_ids=frozenset(values))
    return _between(bounds, name, min(values), max(values)) if values else bounds


def _between(bounds: Bounds, column: str, least: Any, most: Any) -> Bounds:  # noqa: ANN401 - of the column's type
    if column == "sequenceNumber":
        return bounds.narrowed(first=least, last=most)
    if column == "enqueuedTime":
        return bounds.narrowed(
            since=None if least is None else max(least, _EARLIEST) - CLOCK_STEP_MAX,
            until=None if most is None else min(most, _LATEST) + CLOCK_STEP_MAX,
        )
    return bounds
