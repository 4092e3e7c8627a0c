"""A Kafka message as an event: what is where, and what has no counterpart."""

from datetime import UTC, datetime

from eventproc.sources.kafka.event import KEY, TOMBSTONE, to_received_event
from tests.unit.sources.kafka.messages import FakeMessage


def test_each_part_has_its_place():
    """Offset, time, key, headers and value."""
    event = to_received_event(
        FakeMessage(
            42,
            b"body",
            key=b"customer-7",
            headers=[("content-type", b"text/plain"), ("raw", b"\xff"), ("none", None)],
            ms=1_500,
        )
    )

    assert (event.sequence_number, event.offset) == (42, "kafka:42")
    assert event.body == b"body"
    assert event.partition_key == "customer-7"
    assert event.enqueued_time == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert event.properties == {"content-type": "text/plain", "raw": b"\xff", "none": None}
    assert event.content_type == "text/plain"
    assert event.system_properties == {}


def test_a_tombstone_is_not_an_empty_value():
    """Both have an empty body; only one deletes its key."""
    tombstone = to_received_event(FakeMessage(1, None, key=b"k"))
    empty = to_received_event(FakeMessage(2, b"", key=b"k"))

    assert (tombstone.body, tombstone.system_properties) == (b"", {TOMBSTONE: True})
    assert (empty.body, empty.system_properties) == (b"", {})


def test_a_key_that_is_no_text_keeps_its_bytes():
    """Key lanes go by the text, so two keys need two texts."""
    one, other = (to_received_event(FakeMessage(1, key=key)) for key in (b"\xff", b"\xfe"))

    assert one.partition_key != other.partition_key
    assert one.system_properties[KEY] == b"\xff"
    assert one.partition_key is not None
    one.partition_key.encode()


def test_a_header_that_comes_twice_has_both_values_in_order():
    """Kafka allows that; none is lost."""
    headers = [("a", b"1"), ("b", b"x"), ("a", b"2"), ("a", None)]

    properties = to_received_event(FakeMessage(1, headers=headers)).properties

    assert properties == {"a": ("1", "2", None), "b": "x"}


def test_a_message_without_a_time_has_the_oldest():
    """As from a broker that knows no times."""
    assert to_received_event(FakeMessage(1, ms=-1)).enqueued_time.year == 1970
