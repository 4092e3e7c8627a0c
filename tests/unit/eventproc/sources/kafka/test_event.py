"""A Kafka message as an event: the fields for its parts, and what has no counterpart."""

import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.models import KAFKA_KEY, KAFKA_TOMBSTONE, ReceivedEvent
from eventproc.models._events import EVENT_FIELDS
from eventproc.sources.kafka._event import in_short
from tests.unit.eventproc.sources.kafka.messages import event_of


def test_each_part_of_a_message_has_its_field():
    """Offset, time, key, headers and value."""
    event = event_of(
        42,
        b"body",
        key=b"customer-7",
        headers=[("content-type", b"text/plain"), ("raw", b"\xff"), ("none", None)],
        ms=1_500,
    )

    assert (event.sequence_number, event.offset) == (42, "kafka:42")
    assert event.body == b"body"
    assert event.partition_key == "customer-7"
    assert event.enqueued_time == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert event.properties == {"content-type": "text/plain", "raw": b"\xff", "none": None}
    assert event.content_type == "text/plain"
    assert event.system_properties == {}


def test_a_tombstone_differs_from_an_empty_value():
    """Both have an empty body; only the tombstone deletes its key."""
    tombstone = event_of(1, None, key=b"k")
    empty = event_of(2, b"", key=b"k")

    assert (tombstone.body, tombstone.system_properties) == (b"", {KAFKA_TOMBSTONE: True})
    assert (empty.body, empty.system_properties) == (b"", {})


def test_keys_that_are_not_utf_8_stay_distinct():
    """Key lanes use the text, so two keys need two texts. The bytes are kept beside it."""
    one, other = (event_of(1, key=key) for key in (b"\xff", b"\xfe"))

    assert one.partition_key != other.partition_key
    assert one.system_properties[KAFKA_KEY] == b"\xff"
    assert one.partition_key is not None
    one.partition_key.encode()


def test_a_repeated_header_has_all_its_values_in_order():
    """Kafka allows that."""
    headers = [("a", b"1"), ("b", b"x"), ("a", b"2"), ("a", None)]

    properties = event_of(1, headers=headers).properties

    assert properties == {"a": ("1", "2", None), "b": "x"}


def test_a_message_without_a_time_gets_the_first_of_1970():
    """Some brokers send no times."""
    assert event_of(1, ms=-1).enqueued_time.year == 1970


def test_a_time_beyond_the_range_of_datetime_is_the_latest():
    """A producer that counts microseconds must not stop the reading of its partition."""
    assert event_of(1, ms=1_700_000_000_000_000).enqueued_time.year == 9999


@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_a_kafka_event_equals_a_received_event_whichever_field_is_read_first(name):
    """It is pickled as a ``ReceivedEvent``."""
    event = event_of(7, b"v", key=b"k", headers=[("a", b"1")], ms=5)
    value = getattr(event, name)
    plain = pickle.loads(pickle.dumps(event))

    assert type(plain) is ReceivedEvent
    assert plain == event
    assert getattr(plain, name) == value


@pytest.mark.parametrize("value", [b"v", None])
@pytest.mark.parametrize("name", EVENT_FIELDS)
def test_no_field_of_an_event_can_be_changed(name, value):
    """Although they are set while the event is made."""
    event = event_of(7, value)

    with pytest.raises(FrozenInstanceError):
        setattr(event, name, b"")
    with pytest.raises(FrozenInstanceError):
        delattr(event, name)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_only_numbers_without_gaps_are_a_range(numbers):
    """In order, none twice and none missing; whatever they are, they stay the same numbers."""
    found = in_short(numbers)

    assert list(found) == numbers
    assert isinstance(found, range) == all(b - a == 1 for a, b in pairwise(numbers))


def test_a_misspelt_field_raises_attribute_error():
    """The message has the name."""
    with pytest.raises(AttributeError, match="bodi"):
        event_of(1).bodi  # noqa: B018 - the point
