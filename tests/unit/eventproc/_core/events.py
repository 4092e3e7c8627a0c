"""Events for tests of decisions: only their sequence numbers matter."""

from collections.abc import Iterable
from datetime import UTC, datetime

from eventproc.models import ReceivedEvent


def event(number: int) -> ReceivedEvent:
    """An event with this sequence number, and the offset ``o<number>``."""
    return ReceivedEvent(
        body=b"", sequence_number=number, offset=f"o{number}", enqueued_time=datetime.now(UTC)
    )


def events(numbers: Iterable[int]) -> list[ReceivedEvent]:
    """An event for each of these sequence numbers."""
    return [event(number) for number in numbers]


def numbers(events: Iterable[ReceivedEvent]) -> list[int]:
    """The sequence numbers of events."""
    return [e.sequence_number for e in events]
