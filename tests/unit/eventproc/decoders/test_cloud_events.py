"""CloudEvents in both modes, by the specification's examples of AMQP, Kafka and JSON."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from eventproc.decoders import CloudEvent, CloudEventDecoder, FunctionDecoder, JsonDecoder
from eventproc.errors import DecodeError
from eventproc.models import ReceivedEvent

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JSON = "application/cloudevents+json; charset=utf-8"


class Order(msgspec.Struct):
    """The data."""

    count: int


ATTRIBUTES = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/shop",
    "type": "order.created",
    "time": "2026-01-01T12:00:00Z",
    "subject": "7",
    "tenant": "t1",
    "urgent": True,
}
EXPECTED: CloudEvent[Order] = CloudEvent(
    id="A-1",
    source="/shop",
    type="order.created",
    subject="7",
    time=NOON,
    data_content_type="application/json",
    extensions={"tenant": "t1", "urgent": "true"},
    data=Order(3),
)


def event(body: bytes, kind: str | None = JSON, **properties: object) -> ReceivedEvent:
    """Return an event with this body and content type."""
    return ReceivedEvent(
        body=body,
        sequence_number=1,
        offset="1",
        enqueued_time=NOON,
        content_type=kind,
        properties=properties,
    )


def structured(**changes: Any) -> bytes:
    """Return a structured event with changes."""
    return json.dumps({**ATTRIBUTES, "datacontenttype": "application/json", **changes}).encode()


@pytest.mark.parametrize("prefix", ["cloudEvents:", "cloudEvents_", "ce_"])
def test_attributes_are_read_from_properties(prefix):
    """Of AMQP and of Kafka; the content type is that of the data."""
    properties = {f"{prefix}{name}": value for name, value in ATTRIBUTES.items()}
    found = CloudEventDecoder(JsonDecoder(Order)).value_of(
        event(b'{"count": 3}', "application/json", **properties)
    )

    assert found == EXPECTED


def test_attributes_and_data_are_read_from_the_body():
    """JSON data is decoded as the data of a binary event is."""
    found = CloudEventDecoder(JsonDecoder(Order)).value_of(event(structured(data={"count": 3})))

    assert found == EXPECTED


def test_the_content_type_may_be_a_header_of_kafka():
    """Kafka has no other place for it."""
    body = structured(data={"count": 3})
    found = CloudEventDecoder(JsonDecoder(Order)).value_of(
        event(body, None, **{"content-type": JSON})
    )

    assert found.data == Order(3)


@pytest.mark.parametrize(
    ("changes", "data"),
    [
        ({"data_base64": "/w=="}, b"\xff"),
        ({"data": "<a/>", "datacontenttype": "text/xml"}, b"<a/>"),
        ({"data": "text"}, b'"text"'),
        ({"data": "text", "datacontenttype": None}, b'"text"'),
        ({"data": {"a": 1}, "datacontenttype": "application/vnd.x+json"}, b'{"a": 1}'),
        ({"data": None, "subject": None}, b"null"),
        ({}, b""),
    ],
)
def test_data_is_bytes_text_or_json(changes, data):
    """As the content type of the data says; without one it is JSON."""
    decoder = CloudEventDecoder(FunctionDecoder(bytes))

    assert decoder.value_of(event(structured(**changes))).data == data


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (structured(id=None), JSON, "attribute 'id' is missing"),
        (structured(source=""), JSON, "attribute 'source' is missing"),
        (b"{}", "application/json", "attribute 'id' is missing"),
        (b"[]", JSON, "no CloudEvent"),
        (structured(time="noon", data={"count": 1}), JSON, "Invalid RFC3339"),
        (structured(data={"count": "x"}), JSON, "got `str`"),
        (structured(data_base64="*"), JSON, "no CloudEvent"),
        (b"[]", "application/cloudevents-batch+json", "a batch of CloudEvents is no single event"),
    ],
)
def test_what_is_no_cloud_event_cannot_be_decoded(body, kind, message):
    """The error says what is missing."""
    with pytest.raises(DecodeError, match=message):
        CloudEventDecoder(JsonDecoder(Order)).value_of(event(body, kind))


def test_a_time_may_be_a_timestamp_of_amqp():
    """The vendor's client and ours give such a property as milliseconds since 1970."""
    attributes = {**ATTRIBUTES, "time": int(NOON.timestamp() * 1000)}
    properties = {f"cloudEvents_{name}": value for name, value in attributes.items()}
    found = CloudEventDecoder(JsonDecoder(Order)).decode(
        b'{"count": 3}', event(b"", "application/json", **properties)
    )

    assert found == EXPECTED


def test_data_in_base64_that_is_null_is_no_data_in_base64():
    """Some programs write each attribute that is not set so."""
    body = structured(data={"count": 3}, data_base64=None)

    assert CloudEventDecoder(JsonDecoder(Order)).decode(body, event(body)) == EXPECTED


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Text/Plain; note=AbC", "Text/Plain; note=AbC"),
        (b"text/\xff", "text/\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_the_content_type_of_the_data_stays_as_it_was_published(given, shown):
    """Parameters such as a boundary differ by case. It may be no UTF-8."""
    properties = {f"ce_{name}": ATTRIBUTES[name] for name in ("id", "source", "type")}
    published = event(b"x", None, **{**properties, "content-type": given})
    found = CloudEventDecoder(FunctionDecoder(bytes)).decode(b"x", published)

    assert found.data_content_type == shown
