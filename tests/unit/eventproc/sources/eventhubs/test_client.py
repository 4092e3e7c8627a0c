"""Start positions as Azure's client gets them."""

from datetime import UTC, datetime

import pytest

from eventproc.models import EventPosition
from eventproc.sources.eventhubs._client import start_of


@pytest.mark.parametrize(
    ("microseconds", "is_inclusive", "expected_ms"),
    [(500_000, True, 500), (500_001, True, 501), (500_000, False, 500), (500_001, False, 500)],
)
def test_a_start_time_is_rounded_up_to_the_next_millisecond(
    microseconds, is_inclusive, expected_ms
):
    """The client rounds down, and events of the earlier millisecond came before the time."""
    time = datetime(2026, 1, 31, 8, 0, 0, microseconds, tzinfo=UTC)
    start = start_of(EventPosition(enqueued_time=time, is_inclusive=is_inclusive))

    assert isinstance(start, datetime)
    assert start.microsecond // 1000 == expected_ms
