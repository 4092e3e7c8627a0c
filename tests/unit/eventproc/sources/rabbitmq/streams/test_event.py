"""A message of a stream becomes an event; what is no AMQP message becomes a body."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.emulator.amqp.values import Symbol
from eventproc.errors import ConfigurationError
from eventproc.models import EVENT_FIELDS
from eventproc.sources.rabbitmq.streams import StreamOptions
from eventproc.sources.rabbitmq.streams.event import events_of, key_reader
from tests.unit.eventproc.sources.eventhubs.messages import section

STORED_MS = 1_795_205_646_471
ANNOTATIONS = section(0x72, {Symbol("x-routing-key"): "r1", Symbol("x-exchange"): ""})
PROPERTIES = section(0x73, ["m-1", None, None, "subject", None, "c-1", Symbol("text/plain")])
OWN = section(0x74, {"customer": "anna", "count": 7})
BODY = section(0x75, b"hello")


def event_of(message, key="group-id"):
    read_key = key_reader(StreamOptions(key=key).key)
    (event,) = events_of([message], 42, STORED_MS, read_key)
    return event


def test_an_amqp_message_has_its_fields():
    """As the broker stores what was published by AMQP 0.9.1."""
    event = event_of(ANNOTATIONS + PROPERTIES + OWN + BODY)

    assert event.body == b"hello"
    assert (event.sequence_number, event.offset) == (42, "stream:42")
    assert event.enqueued_time == datetime(2026, 11, 20, 20, 14, 6, 471_000, tzinfo=UTC)
    assert event.properties == {"customer": "anna", "count": 7}
    assert event.system_properties == {
        "x-routing-key": "r1",
        "x-exchange": "",
        "message-id": "m-1",
        "subject": "subject",
        "correlation-id": "c-1",
        "content-type": "text/plain",
    }
    assert (event.message_id, event.correlation_id) == ("m-1", "c-1")
    assert event.content_type == "text/plain"
    assert event.partition_key is None


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("message-id", "m-1"),
        ("subject", "subject"),
        ("group-id", None),
        ("property:customer", "anna"),
        ("property:count", "7"),
        ("property:nothing", None),
        ("annotation:x-routing-key", "r1"),
    ],
)
def test_the_key_is_read_where_the_options_say(key, expected):
    """A property of AMQP, of the application, or an annotation; always as text."""
    assert event_of(ANNOTATIONS + PROPERTIES + OWN + BODY, key).partition_key == expected


@pytest.mark.parametrize("key", ["", "customer", "property:", "annotation:", "group_id"])
def test_a_key_of_no_known_place_is_refused(key):
    """The message lists the places."""
    with pytest.raises(ConfigurationError, match=r"give property:NAME, annotation:NAME, or .*to,"):
        StreamOptions(key=key)


@pytest.mark.parametrize(
    "message", [b"plain text", b"", *(BODY[:end] for end in range(1, len(BODY))), BODY + b"\xff"]
)
def test_other_bytes_are_the_body_of_an_event_without_properties(message):
    """And the event says so, unless it is empty."""
    event = event_of(message)

    assert event.body == message
    assert event.properties == {}
    assert event.partition_key is None
    assert event.system_properties == ({"rabbitmq-not-amqp": True} if message else {})


def test_events_of_a_chunk_have_consecutive_numbers_and_one_time():
    """They keep nothing of the chunk but its time, so that one of them does not hold the others."""
    events = events_of([b"a", BODY, b"c"], 7, STORED_MS, key_reader("group-id"))

    assert [event.sequence_number for event in events] == [7, 8, 9]
    assert [event.body for event in events] == [b"a", b"hello", b"c"]
    assert len({event.enqueued_time for event in events}) == 1
    assert events_of([], 7, STORED_MS, key_reader("group-id")) == []


@given(message=st.binary() | st.binary().map(lambda rest: ANNOTATIONS + rest))
def test_any_bytes_are_an_event(message):
    """No field raises, whatever a publisher sent."""
    event = event_of(message)

    assert [getattr(event, name) is not NotImplemented for name in EVENT_FIELDS]
