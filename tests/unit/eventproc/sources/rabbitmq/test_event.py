"""A message of a queue as an event."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

import pytest

from eventproc.models import ReceivedEvent
from eventproc.models._events import EVENT_FIELDS
from eventproc.sources.rabbitmq import RabbitQueues
from eventproc.sources.rabbitmq._event import (
    ACQUIRED_COUNT_HEADER,
    DELIVERIES,
    DELIVERY_COUNT_HEADER,
    KEY_HEADER,
    QueueEvent,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@dataclass
class FakeProperties:
    """What AMQP 0-9-1 calls the properties of a message."""

    headers: Mapping[str, object] | None = None
    timestamp: datetime | None = None
    content_type: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None


@dataclass
class FakeHeader:
    """The frame before the body."""

    properties: FakeProperties


@dataclass
class FakeMessage:
    """As much of a message as an event reads."""

    body: bytes = b"x"
    properties: FakeProperties = field(default_factory=FakeProperties)
    redelivered: bool | None = False

    @property
    def header(self) -> FakeHeader:
        return FakeHeader(self.properties)


def event_of(message: FakeMessage) -> QueueEvent:
    return QueueEvent(message, 42, NOW)  # type: ignore[arg-type]  # what an event reads of it


def test_each_part_of_a_message_has_its_field():
    """Body, key, headers, properties, and the time of its publisher."""
    event = event_of(
        FakeMessage(
            b"body",
            FakeProperties(
                headers={KEY_HEADER: "customer-7", "colour": "red"},
                timestamp=datetime(2026, 1, 1, tzinfo=UTC),
                content_type="text/plain",
                correlation_id="c",
                message_id="m",
            ),
        )
    )

    assert (event.sequence_number, event.offset) == (42, "queue:42")
    assert (event.body, event.partition_key) == (b"body", "customer-7")
    assert event.properties == {"colour": "red"}
    assert event.enqueued_time == datetime(2026, 1, 1, tzinfo=UTC)
    assert (event.content_type, event.correlation_id, event.message_id) == ("text/plain", "c", "m")
    assert event.system_properties == {}


def test_a_publishers_time_with_a_zone_keeps_it():
    """It is the same moment."""
    there = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    event = event_of(FakeMessage(properties=FakeProperties(timestamp=there)))

    assert event.enqueued_time == datetime(2026, 1, 1, 10, tzinfo=UTC)


def test_a_bare_message_has_the_time_of_its_arrival():
    """The broker does not add one."""
    event = event_of(FakeMessage())

    assert event.enqueued_time == NOW
    assert (event.partition_key, event.properties) == (None, {})


def test_a_publishers_time_is_utc():
    """By the protocol it has no zone."""
    event = event_of(FakeMessage(properties=FakeProperties(timestamp=datetime(2026, 1, 1))))  # noqa: DTZ001

    assert event.enqueued_time == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "is_again", "shown"),
    [
        ({}, False, {}),
        ({DELIVERY_COUNT_HEADER: 0}, False, {}),
        ({}, True, {DELIVERIES: 1}),
        ({DELIVERY_COUNT_HEADER: 3}, True, {DELIVERIES: 3}),
        ({DELIVERY_COUNT_HEADER: "many"}, True, {DELIVERIES: 1}),
        ({ACQUIRED_COUNT_HEADER: 4}, True, {DELIVERIES: 4}),
        ({ACQUIRED_COUNT_HEADER: 4, DELIVERY_COUNT_HEADER: 1}, True, {DELIVERIES: 4}),
        ({DELIVERY_COUNT_HEADER: 0}, True, {DELIVERIES: 1}),
    ],
)
def test_former_deliveries_are_shown(headers, is_again, shown):
    """By the higher one of the broker's counts; without any, that there were some."""
    event = event_of(FakeMessage(properties=FakeProperties(headers=headers), redelivered=is_again))

    assert event.system_properties == shown
    assert event.properties == {}
    assert RabbitQueues("amqp://broker", prefix="q", count=1).was_delivered(event) is bool(shown)


def test_a_key_of_another_type_is_no_key():
    """A header may have any type."""
    event = event_of(FakeMessage(properties=FakeProperties(headers={KEY_HEADER: 7})))

    assert event.partition_key is None


def test_an_event_is_equal_to_one_with_the_same_fields():
    """Also after it went to another process."""
    event = event_of(FakeMessage(b"body"))
    plain = ReceivedEvent(**{name: getattr(event, name) for name in EVENT_FIELDS})

    assert event == plain
    assert pickle.loads(pickle.dumps(event_of(FakeMessage(b"body")))) == plain


def test_an_unknown_field_is_an_attribute_error():
    """As for any object."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = event_of(FakeMessage()).nothing  # type: ignore[attr-defined]
