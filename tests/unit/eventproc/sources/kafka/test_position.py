"""When the end of a Kafka partition has to be found by reading."""

from datetime import UTC, datetime

import pytest

from eventproc.errors import SourceRejectedError
from eventproc.models import EventPosition
from eventproc.sources.kafka.position import OFFSETS, is_end_needed
from eventproc.sources.log_offsets import Bounds

SOME = Bounds(low=10, high=20)


@pytest.mark.parametrize(
    ("position", "is_needed"),
    [
        (EventPosition.latest(), True),
        (EventPosition.from_sequence_number(20), True),
        (EventPosition.from_offset("kafka:20"), True),
        (EventPosition.from_sequence_number(19), False),
        (EventPosition.from_sequence_number(20, is_inclusive=True), False),
        (EventPosition.earliest(), False),
        (EventPosition.from_enqueued_time(datetime(2026, 1, 1, tzinfo=UTC)), False),
    ],
)
def test_the_end_must_be_read_if_reading_begins_at_it(position, is_needed):
    """A broker may report an end before events that it delivers, so only reading shows it."""
    assert is_end_needed("0", position, SOME) is is_needed


def test_an_offset_of_event_hubs_is_refused():
    """The message names the prefix of Kafka's."""
    with pytest.raises(SourceRejectedError, match=r"not one of Kafka .*'kafka:'"):
        is_end_needed("0", EventPosition.from_offset("4711"), SOME)


def test_an_offset_of_kafka_has_its_prefix():
    """As in checkpoints that are stored already."""
    assert OFFSETS.text(42) == "kafka:42"
