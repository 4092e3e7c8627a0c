"""Events are encoded as Azure's client encodes them."""

from collections.abc import Mapping
from typing import Any

import pytest
from azure.eventhub import EventData, EventDataBatch
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.amqp import APPLICATION_PROPERTIES, PROPERTIES
from eventproc.models import PropertyValue
from eventproc.sources._amqp.encoding import encode_event
from eventproc.sources._amqp.fields import to_system_fields
from eventproc.sources._amqp.sections import EncodedMessage, body_of
from eventproc.sources.eventhubs._producer import Batch

LIMIT = 1024 * 1024
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([-(2**31) - 1, -(2**31), 2**31 - 1, 2**31, -129, -128, 127, 128])
    | st.floats()
    | st.text()
    | st.binary()
)
EVENTS = st.tuples(
    st.binary(),
    st.none() | st.text(min_size=1),
    st.dictionaries(st.text(), VALUES, max_size=5),
)
LARGE: dict[str, PropertyValue] = {f"name {number}": "v" * 300 for number in range(200)}


def by_azures_client(
    body: bytes, key: str | None, properties: Mapping[str, PropertyValue]
) -> EventDataBatch:
    """Return a batch of one event; integers of 64 bits are given with their type."""

    def typed(value: PropertyValue) -> Any:
        if type(value) is not int or -(2**31) <= value < 2**31:
            return value
        return {"TYPE": "LONG" if value < 2**63 else "ULONG", "VALUE": value}

    event = EventData(body)
    event.properties = {name: typed(value) for name, value in properties.items()}
    batch = EventDataBatch(max_size_in_bytes=LIMIT, partition_key=key)
    batch.add(event)
    return batch


def check(event: tuple[bytes, str | None, dict[str, PropertyValue]]) -> None:
    """Compare the bytes of the event, and the size of a batch with it."""
    expected = by_azures_client(*event)
    batch = Batch(EventDataBatch(max_size_in_bytes=LIMIT, partition_key=event[1]))
    encoded = encode_event(*event)

    assert encoded == bytes(expected._message.data[0])
    assert batch.add(encoded)
    assert (len(batch), batch.request.size_in_bytes) == (1, expected.size_in_bytes)


@given(EVENTS)
def test_an_event_has_the_bytes_that_azures_client_gives_it(event):
    """With and without a key, with values of every type; a batch has the same size."""
    check(event)


def test_a_large_event_has_the_bytes_that_azures_client_gives_it():
    """Lengths above 255 take four bytes."""
    check((b"x" * 256, "k" * 300, LARGE))


SHORT = st.none() | st.text(min_size=1, max_size=20)


@given(SHORT, SHORT, st.none() | st.text(st.characters(codec="ascii"), min_size=1))
def test_ids_and_content_type_are_decoded_as_they_were_given(message_id, correlation_id, kind):
    """They are properties of AMQP, before those of the publisher."""
    encoded = encode_event(
        b"x",
        "k",
        {"a": 1},
        message_id=message_id,
        correlation_id=correlation_id,
        content_type=kind,
    )
    message = EncodedMessage(encoded)
    found = to_system_fields(None, message.one(PROPERTIES))

    assert (found.message_id, found.correlation_id, found.content_type) == (
        message_id,
        correlation_id,
        kind,
    )
    assert message.one(APPLICATION_PROPERTIES) == {b"a": 1}
    assert body_of(encoded, 0) == b"x"


def test_long_ids_are_decoded_as_they_were_given():
    """Lengths above 255 take four bytes."""
    encoded = encode_event(b"x", None, {}, message_id="m" * 300)
    found = to_system_fields(None, EncodedMessage(encoded).one(PROPERTIES))

    assert found.message_id == "m" * 300


@pytest.mark.parametrize("size", range(240, 260))
def test_properties_around_the_limit_of_a_small_map_have_the_same_bytes(size):
    """The length in one byte counts the number of entries, too."""
    check((b"", None, {"n": "v" * size}))


def test_a_batch_takes_no_more_than_its_limit():
    """An event that just fits is added, and one more byte is not."""
    body = b"x" * 1000
    encoded = encode_event(body, None, {})
    size = Batch(EventDataBatch(max_size_in_bytes=LIMIT)).size_with(encoded)
    fits, full = (Batch(EventDataBatch(max_size_in_bytes=limit)) for limit in (size, size - 1))

    assert fits.add(encoded)
    assert not full.add(encoded)
    assert (len(fits), len(full), full.request.size_in_bytes) == (1, 0, 0)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, "\ud800"])
def test_what_amqp_does_not_have_is_refused(value):
    """Integers of more than 64 bits, and text that is not Unicode."""
    with pytest.raises(ValueError, match=r"64 bits|surrogates"):
        encode_event(b"", None, {"x": value})
