"""From AMQP messages to events: every form of body, names as text, nothing lost."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import SourceRejectedError
from eventproc.sources.eventhubs.event import to_last_enqueued, to_received_event

ANNOTATIONS = {
    b"x-opt-sequence-number": 7,
    b"x-opt-offset": b"4711",
    b"x-opt-enqueued-time": 1_795_205_646_471,
}


class Message(NamedTuple):
    """The sections, as Azure's decoder names them."""

    delivery_annotations: Any = None
    message_annotations: Any = ANNOTATIONS
    properties: Any = None
    application_properties: Any = None
    data: Any = None
    sequence: Any = None
    value: Any = None


def test_an_event_has_its_place_and_time():
    """All three come from the service's annotations."""
    event = to_received_event(Message(data=[b"x"]))

    assert (event.sequence_number, event.offset) == (7, "4711")
    assert event.enqueued_time == datetime(2026, 11, 20, 20, 14, 6, 471_000, tzinfo=UTC)
    assert event.partition_key is None


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5))
def test_a_body_of_several_sections_is_joined(sections):
    """Byte for byte."""
    assert to_received_event(Message(data=sections)).body == b"".join(sections)


@pytest.mark.parametrize(
    ("message", "body"),
    [
        (Message(), b""),
        (Message(value=b"as it is \xff"), b"as it is \xff"),
        (Message(value=12), b"12"),
        (Message(value={b"name": b"Ada", b"n": [1, 2]}), b'{"name": "Ada", "n": [1, 2]}'),
        (Message(sequence=[[1, b"two"], [3]]), b'[1, "two", 3]'),
        (Message(sequence=[b"one"]), b'["one"]'),
    ],
)
def test_a_body_that_is_no_data_becomes_bytes(message, body):
    """A single text or binary value as it is, everything else as JSON."""
    assert to_received_event(message).body == body


names = st.text(min_size=1, max_size=10)
values = st.one_of(st.text(max_size=10), st.integers(), st.booleans(), st.none())


@given(st.dictionaries(names, values, max_size=5))
def test_what_a_publisher_attached_comes_back_as_it_was(attached):
    """The decoder gives text as bytes, and here it is text again."""
    encoded = {
        name.encode(): value.encode() if isinstance(value, str) else value
        for name, value in attached.items()
    }

    assert to_received_event(Message(application_properties=encoded)).properties == attached


def test_bytes_that_are_no_text_stay_bytes():
    """Nothing is replaced by question marks."""
    event = to_received_event(Message(application_properties={b"raw": b"\xff\xfe"}))

    assert event.properties == {"raw": b"\xff\xfe"}


def test_amqp_s_own_properties_are_named_as_azure_names_them():
    """Those with a field of their own are there as well."""
    identity = UUID(int=1)
    properties = (b"m1", None, b"to", None, None, identity, b"text/plain", *[None] * 4, 5, b"g")
    annotations = ANNOTATIONS | {b"x-opt-partition-key": b"key", b"x-opt-own": 1}
    event = to_received_event(
        Message(data=[b""], properties=properties, message_annotations=annotations)
    )

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
def test_a_message_without_a_place_is_refused(missing):
    """It could not be checkpointed."""
    annotations = {name: value for name, value in ANNOTATIONS.items() if name != missing}
    with pytest.raises(SourceRejectedError, match="not an event hub"):
        to_received_event(Message(message_annotations=annotations))


def test_the_newest_event_of_the_partition_is_told_along():
    """In the delivery annotations, if the link asked for it."""
    told = to_last_enqueued(
        Message(
            delivery_annotations={
                b"last_enqueued_sequence_number": 9,
                b"last_enqueued_offset": b"5000",
                b"last_enqueued_time_utc": 1_795_205_646_471,
            }
        )
    )

    assert told is not None
    assert (told.sequence_number, told.offset) == (9, "5000")
    assert told.enqueued_time == datetime(2026, 11, 20, 20, 14, 6, 471_000, tzinfo=UTC)


@pytest.mark.parametrize("told", [None, {}, {b"last_enqueued_offset": b"1"}])
def test_nothing_told_is_nothing_known(told):
    """No guess is made."""
    assert to_last_enqueued(Message(delivery_annotations=told)) is None


def test_json_bodies_are_readable_as_json():
    """Text keeps its letters."""
    body = to_received_event(Message(value={b"city": "Köln".encode()})).body

    assert json.loads(body) == {"city": "Köln"}
