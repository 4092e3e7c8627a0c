"""From AMQP messages to events: each form of body, names as text, nothing lost."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from azure.eventhub._pyamqp.message import Message, Properties
from azure.eventhub.amqp import AmqpAnnotatedMessage
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import SourceRejectedError
from eventproc.models import ReceivedEvent
from eventproc.sources.eventhubs._event import to_last_enqueued
from eventproc.sources.eventhubs._public_path import to_received_event

ANNOTATIONS = {
    b"x-opt-sequence-number": 7,
    b"x-opt-offset": b"4711",
    b"x-opt-enqueued-time": 1_795_205_646_471,
}


def received(**sections: Any) -> ReceivedEvent:
    """The event that Azure's client makes of these sections, as its decoder returns them."""
    decoded = Message(**{"message_annotations": ANNOTATIONS, **sections})
    return to_received_event(AmqpAnnotatedMessage(message=decoded))


def test_an_event_has_its_position_and_time():
    """Sequence number, offset and time come from the service's annotations."""
    event = received(data=[b"x"])

    assert (event.sequence_number, event.offset) == (7, "4711")
    assert event.enqueued_time == datetime(2026, 11, 20, 20, 14, 6, 471_000, tzinfo=UTC)
    assert event.partition_key is None


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5))
def test_a_body_of_several_sections_is_joined(sections):
    """Byte for byte."""
    assert received(data=sections).body == b"".join(sections)


@pytest.mark.parametrize(
    ("sections", "body"),
    [
        ({}, b""),
        ({"value": b"as it is \xff"}, b"as it is \xff"),
        ({"value": 12}, b"12"),
        ({"value": {b"name": b"Ada", b"n": [1, 2]}}, b'{"name": "Ada", "n": [1, 2]}'),
        ({"sequence": [[1, b"two"], [3]]}, b'[1, "two", 3]'),
        ({"sequence": [b"one"]}, b'["one"]'),
    ],
)
def test_a_body_without_data_sections_is_converted_to_bytes(sections, body):
    """A single text or binary value as it is, everything else as JSON."""
    assert received(**sections).body == body


names = st.text(min_size=1, max_size=10)
values = st.one_of(st.text(max_size=10), st.integers(), st.booleans(), st.none())


@given(st.dictionaries(names, values, max_size=5))
def test_application_properties_equal_those_that_were_published(published):
    """The decoder returns text as bytes, which is decoded again."""
    encoded = {
        name.encode(): value.encode() if isinstance(value, str) else value
        for name, value in published.items()
    }

    assert received(application_properties=encoded).properties == published


def test_a_property_that_is_not_utf_8_stays_bytes():
    """No byte is replaced."""
    event = received(application_properties={b"raw": b"\xff\xfe"})

    assert event.properties == {"raw": b"\xff\xfe"}


def test_system_properties_have_the_names_of_azures_client():
    """Also those that have a field of their own."""
    identity = UUID(int=1)
    values: list[Any] = [b"m1", None, b"to", None, None, identity, b"text/plain"]
    properties = Properties._make([*values, *[None] * 4, 5, b"g"])
    annotations = ANNOTATIONS | {b"x-opt-partition-key": b"key", b"x-opt-own": 1}
    event = received(data=[b""], properties=properties, message_annotations=annotations)

    assert (event.message_id, event.correlation_id) == ("m1", str(identity))
    assert event.content_type == "text/plain"
    assert event.partition_key == "key"
    assert event.system_properties == {
        "message-id": "m1",
        "to": "to",
        "correlation-id": identity,
        "content-type": "text/plain",
        "group-sequence": 5,
        "reply-to-group-id": "g",
        "x-opt-sequence-number": 7,
        "x-opt-offset": "4711",
        "x-opt-enqueued-time": 1_795_205_646_471,
        "x-opt-partition-key": "key",
        "x-opt-own": 1,
    }


@pytest.mark.parametrize("missing", ANNOTATIONS)
def test_a_message_without_a_position_is_refused(missing):
    """It could not be checkpointed."""
    annotations = {name: value for name, value in ANNOTATIONS.items() if name != missing}
    with pytest.raises(SourceRejectedError, match="not an event hub"):
        received(message_annotations=annotations)


def test_the_end_of_the_partition_is_read_from_delivery_annotations():
    """The service sends them if the link asked for them."""
    end = to_last_enqueued(
        {
            b"last_enqueued_sequence_number": 9,
            b"last_enqueued_offset": b"5000",
            b"last_enqueued_time_utc": 1_795_205_646_471,
        }
    )

    assert end is not None
    assert (end.sequence_number, end.offset) == (9, "5000")
    assert end.enqueued_time == datetime(2026, 11, 20, 20, 14, 6, 471_000, tzinfo=UTC)


@pytest.mark.parametrize("end", [None, {}, {b"last_enqueued_offset": b"1"}])
def test_without_delivery_annotations_the_end_is_unknown(end):
    """Also if they are incomplete."""
    assert to_last_enqueued(end) is None


def test_a_body_converted_to_json_is_utf_8():
    """Characters outside ASCII are kept."""
    body = received(value={b"city": "Köln".encode()}).body

    assert json.loads(body) == {"city": "Köln"}
