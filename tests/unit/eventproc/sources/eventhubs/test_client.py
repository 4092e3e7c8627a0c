"""What Azure's client is told."""

from datetime import UTC, datetime

import pytest

from eventproc.models import EventPosition
from eventproc.sources.eventhubs.client import start_of


@pytest.mark.parametrize(
    ("microseconds", "is_inclusive", "expected_ms"),
    [(500_000, True, 500), (500_001, True, 501), (500_000, False, 500), (500_001, False, 500)],
)
def test_a_time_between_two_milliseconds_begins_with_the_later(
    microseconds, is_inclusive, expected_ms
):
    """The client cuts off what is less; an event of the earlier one came before the time."""
    time = datetime(2026, 1, 31, 8, 0, 0, microseconds, tzinfo=UTC)
    told = start_of(EventPosition(enqueued_time=time, is_inclusive=is_inclusive))

    assert isinstance(told, datetime)
    assert told.microsecond // 1000 == expected_ms
