"""Event Hubs hands the properties of publishers over AMQP to Kafka clients as AMQP values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.amqp import skip
from eventproc.sources._amqp.encoding import encode_event
from eventproc.sources._amqp.fields import to_properties
from eventproc.sources._amqp.sections import EncodedMessage
from eventproc.sources.kafka import KafkaEventSource
from eventproc.sources.kafka._feed import Feed
from tests.unit.eventproc.sources.kafka.messages import FakeMessage

APPLICATION_PROPERTIES = 0x74
KEY = "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=c2U="


def properties_of(headers: Any, *, is_of_event_hubs: bool = True) -> Any:
    """Return the properties of an event with these headers, by way of a feed."""
    feed = Feed(0, 0, after_ms=None, room=10, room_bytes=10_000)
    feed.is_of_event_hubs = is_of_event_hubs
    feed.put([FakeMessage(0, headers=headers)])
    (event,) = feed.take(1)
    return event.properties


def encoded(properties: dict[str, Any]) -> tuple[Any, list[tuple[str, bytes]]]:
    """Return the properties as AMQP gives them, and as the service encodes each."""
    message = EncodedMessage(encode_event(b"", None, properties))
    headers = []
    for name, value in properties.items():
        alone = encode_event(b"", None, {"": value})
        at = alone.index(b"\xa1\x00") + 2
        headers.append((name, alone[at : skip(alone, at)]))
    return to_properties(message.one(APPLICATION_PROPERTIES)), headers


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.text(max_size=300) | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(),
        min_size=1,
        max_size=5,
    ).map(lambda drawn: drawn | {"shop": "Zürich"})
)
def test_an_amqp_publishers_properties_are_those_that_amqp_gives(properties):
    """Texts, numbers and truth values; a processor may change its protocol."""
    over_amqp, headers = encoded(properties)

    assert repr(properties_of(headers)) == repr(over_amqp)


@given(st.dictionaries(st.text(min_size=1), st.text().map(str.encode).filter(bytes), min_size=1))
def test_a_kafka_publishers_texts_stay_as_they_are(headers):
    """Also those that happen to be AMQP values: "A" is true, and "abc" a number."""
    if not all(value.decode().isprintable() for value in headers.values()):
        return

    assert properties_of(list(headers.items())) == {k: v.decode() for k, v in headers.items()}


@pytest.mark.parametrize("value", [b"A", b"abc", b"price", b"T5", b"@", b"", None])
def test_texts_that_could_be_amqp_values_stay_texts(value):
    """Unless another header of the message can be nothing else."""
    assert properties_of([("a", value)]) == {"a": value if value is None else value.decode()}


@pytest.mark.parametrize(("raw", "number"), [(b"U\x05", 5), (b"\x80" + 7 * b"\0" + b"\t", 9)])
def test_a_number_is_read_as_one_without_another_property(raw, number):
    """Its bytes are valid UTF-8 or not, but no text that anybody writes."""
    assert properties_of([("count", raw)]) == {"count": number}


def test_bytes_that_are_no_whole_amqp_value_stay_bytes():
    """Something behind it, or too little of it."""
    headers = [("a", b"\xa1\x03abcd"), ("b", b"\xa1\x03ab"), ("c", b"\xff")]

    assert properties_of(headers) == dict(headers)


def test_a_broker_of_kafka_is_not_event_hubs():
    """Its publishers' bytes are theirs."""
    headers = [("a", b"\xa1\x03abc")]

    assert properties_of(headers, is_of_event_hubs=False) == dict(headers)
    assert properties_of(headers) == {"a": "abc"}
    assert not KafkaEventSource("broker:9092", topic="orders")._address.is_of_event_hubs
    assert KafkaEventSource.from_connection_string(KEY, topic="orders")._address.is_of_event_hubs
