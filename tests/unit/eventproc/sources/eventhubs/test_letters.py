"""The JSON of a dead letter in several events."""

from datetime import UTC, datetime

import pytest

from eventproc.errors import LetterDamagedError
from eventproc.models import ReceivedEvent
from eventproc.sources.eventhubs._letters import LetterPart, letter_from_parts, part_of, parts_of
from tests.scenarios.dead_letters import letter


def event_of(part: LetterPart) -> ReceivedEvent:
    return ReceivedEvent(
        body=part.content,
        sequence_number=9,
        offset="9",
        enqueued_time=datetime(2026, 1, 1, tzinfo=UTC),
        properties=part.properties,
    )


def test_parts_in_any_order_and_sent_repeatedly_are_the_letter():
    """A request without an answer is sent again; partitions of a hub have no common order."""
    parts = list(parts_of(letter(1), 100))
    found = [part_of(event_of(part)) for part in reversed(parts + parts)]

    assert len(parts) > 5
    assert letter_from_parts([part for part in found if part]) == letter(1)


def test_a_letter_with_a_missing_part_is_damaged():
    """The process died while it sent the parts, or retention deleted the first ones."""
    parts = list(parts_of(letter(1), 100))

    with pytest.raises(
        LetterDamagedError, match=f"only {len(parts) - 1} of the {len(parts)} parts"
    ):
        letter_from_parts(parts[1:])


def test_other_events_are_no_parts():
    """Whole letters, and events of other programs."""
    part = next(parts_of(letter(1), 10_000))
    others = [{}, {**part.properties, "eventproc_part_number": "0"}]

    assert [part_of(letter(1, properties=each).event) for each in others] == [None, None]
