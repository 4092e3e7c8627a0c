"""Events that are decoded when they are read: equal to those of Azure's client."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest
from azure.eventhub import EventData
from hypothesis import given
from hypothesis import strategies as st

from eventproc.emulator._amqp.values import Long, Symbol, Timestamp, Value
from eventproc.errors import SourceRejectedError
from eventproc.models import ReceivedEvent
from eventproc.models._events import EVENT_FIELDS
from eventproc.sources.eventhubs._direct_path import lazy_event as wire_event
from eventproc.sources.eventhubs._direct_path.annotations import (
    NO_KEY,
    TEMPLATES_MAX,
    PositionReader,
)
from eventproc.sources.eventhubs._direct_path.lazy_event import EventReader, last_enqueued_in
from eventproc.sources.eventhubs._public_path import to_received_event
from tests.unit.eventproc.sources._amqp.test_values import plain, texts, values
from tests.unit.eventproc.sources.eventhubs.messages import TIME_MS, message, position, section

headers = st.sampled_from([b"", section(0x70, [True, None, 5]), b"\x00\x53\x70\x45"])
delivery_annotations = st.sampled_from(
    [b"", section(0x71, {Symbol("last_enqueued_sequence_number"): Long(7)})]
)
keys = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=5))
sequence_numbers = st.integers(0, 2**63 - 1)
names = st.sampled_from(["x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time"])


@st.composite
def annotations(draw: st.DrawFn) -> bytes:
    """Draw the three required annotations in any order, with others among them."""
    entries: dict[Value, Value] = {
        Symbol("x-opt-sequence-number"): draw(sequence_numbers.map(Long)),
        Symbol("x-opt-offset"): draw(st.integers(0, 10**12).map(str)),
        Symbol("x-opt-enqueued-time"): Timestamp(TIME_MS + draw(st.integers(0, 9))),
    }
    key = draw(keys)
    if key is not None:
        entries[Symbol("x-opt-partition-key")] = key
    entries |= draw(st.dictionaries(st.just(Symbol("x-opt-own")), plain, max_size=1))
    order = draw(st.permutations(list(entries)))
    return section(0x72, {name: entries[name] for name in order})


amqp_properties = st.lists(st.one_of(st.none(), texts, st.integers(0, 9).map(Long)), max_size=13)
bodies = st.one_of(
    st.lists(st.binary(max_size=300).map(lambda data: section(0x75, data)), min_size=1, max_size=3),
    st.lists(
        st.lists(values, min_size=1, max_size=3).map(lambda v: section(0x76, v)),
        min_size=1,
        max_size=2,
    ),
    values.map(lambda value: [section(0x77, value)]),
).map(b"".join)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Draw any message that a hub may send."""
    return b"".join(
        [
            draw(headers),
            draw(delivery_annotations),
            draw(annotations()),
            draw(st.one_of(st.just(b""), amqp_properties.map(lambda v: section(0x73, v)))),
            draw(
                st.one_of(
                    st.just(b""),
                    st.dictionaries(texts, plain, max_size=3).map(lambda v: section(0x74, v)),
                )
            ),
            draw(bodies),
        ]
    )


def by_azure(payload: bytes) -> ReceivedEvent:
    """The event as the public path makes it."""
    return to_received_event(EventData.from_bytes(payload).raw_amqp_message)


@given(st.lists(messages(), max_size=6), st.permutations(EVENT_FIELDS))
def test_every_field_equals_that_of_azures_client(payloads, order):
    """Whatever was received before, and in whatever order fields are read."""
    for event, payload in zip(EventReader().read(payloads), payloads, strict=True):
        expected = by_azure(payload)
        for name in order:
            assert getattr(event, name) == getattr(expected, name), name
        assert event == expected


@pytest.mark.parametrize("size", [3, 255, 256, 70_000])
@pytest.mark.parametrize(
    ("more", "more_body"),
    [
        (section(0x75, b"more"), b"more"),
        (section(0x75, b"m" * 300), b"m" * 300),
        (section(0x78, {Symbol("x-opt-own"): 1}), b""),
    ],
    ids=["data", "large data", "footer"],
)
def test_a_body_ends_where_its_sections_end(size, more, more_body):
    """Only a single data section, the usual one, reaches to the end of its message."""
    payload = message(1, b"b" * size) + more
    (event,) = EventReader().read([payload])

    assert event.body == by_azure(payload).body == b"b" * size + more_body


def test_a_field_is_decoded_once():
    """A second read returns the same object."""
    (event,) = EventReader().read([message(1, b"body")])

    assert event.body is event.body
    assert event.enqueued_time is event.enqueued_time
    assert event.system_properties is event.system_properties


def test_an_event_behaves_like_a_received_event():
    """It is equal, hashable, frozen, and may be copied and pickled."""
    (event,) = EventReader().read([message(7, b'{"a": 1}', x_opt_partition_key="k")])
    made = ReceivedEvent(
        body=b'{"a": 1}',
        sequence_number=7,
        offset="2100",
        enqueued_time=datetime(2026, 11, 20, 20, 14, 6, 478_000, tzinfo=UTC),
        partition_key="k",
        system_properties={
            "x-opt-sequence-number": 7,
            "x-opt-offset": "2100",
            "x-opt-enqueued-time": TIME_MS + 7,
            "x-opt-partition-key": "k",
        },
    )

    assert event == made
    assert made == event
    assert len({event, made}) == 1
    assert event != EventReader().read([message(8)])[0]
    assert event != "an event"
    for copied in (copy.copy(event), copy.deepcopy(event), pickle.loads(pickle.dumps(event))):
        assert type(copied) is ReceivedEvent
        assert copied == event
    assert pickle.loads(pickle.dumps(made)) == made
    assert event.body_as_json() == {"a": 1}
    with pytest.raises(FrozenInstanceError):
        setattr(event, "body", b"")  # noqa: B010 - as in code without types
    with pytest.raises(AttributeError, match="'colour'"):
        getattr(event, "colour")  # noqa: B009


@pytest.mark.parametrize("name", ["x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time"])
def test_a_message_without_a_position_is_refused_when_received(name):
    """Even after a message with one, which looks almost the same."""
    whole = message(300, b"")
    hidden = whole.replace(name.encode(), name.upper().encode())
    reader = EventReader()

    assert reader.read([whole])[0].sequence_number == 300
    with pytest.raises(SourceRejectedError, match="not an event hub"):
        reader.read([hidden])


@pytest.mark.parametrize(
    "payload", [b"", b"\x00", b"noise", b"\x00\x53\x72\x40", b"\x00\x53\x72\xc1\xff"]
)
def test_an_invalid_message_is_refused_when_received(payload):
    """No handler ever gets it."""
    with pytest.raises(SourceRejectedError):
        EventReader().read([payload])


def test_incomplete_annotations_are_refused_when_received():
    """Even after complete ones that begin in the same way."""
    reader = EventReader()
    reader.read([message(300)])

    with pytest.raises(SourceRejectedError):
        reader.read([position(301)[:-1]])


def test_a_damaged_body_raises_when_it_is_read():
    """Other events are not affected."""
    (event,) = EventReader().read([position(3) + b"\x00\x53\x75\xa0\x05ab"])

    assert event.sequence_number == 3
    with pytest.raises(SourceRejectedError, match="event 3"):
        event.body  # noqa: B018


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        (position(3, x_opt_enqueued_time=Timestamp(2**62)), "enqueued_time"),
        (position(3) + b"\x00\x53\x77" + b"\xd0\x00\x00\xff\xff\x00\x00\x00\x01" * 40_000, "body"),
    ],
    ids=["time", "nested"],
)
def test_a_field_that_cannot_be_decoded_raises_when_it_is_read(payload, field):
    """A time beyond the range of ``datetime``, or a body that is nested too deeply."""
    (event,) = EventReader().read([payload])

    with pytest.raises(SourceRejectedError, match="event 3 cannot be decoded"):
        getattr(event, field)


def test_a_partition_key_that_looks_like_an_annotation_is_a_key():
    """Names are searched for only where names can be."""
    key = "\x15x-opt-sequence-number\x55\x07"
    events = EventReader().read(
        [message(number, b"", x_opt_partition_key=key) for number in (300, 301)]
    )

    assert [event.sequence_number for event in events] == [300, 301]
    assert events[1].partition_key == key


def test_the_number_of_templates_is_bounded():
    """However many different key lengths there are."""
    reader = PositionReader()
    for length in range(3 * TEMPLATES_MAX):
        reader.position_of(message(1000, b"", x_opt_partition_key="k" * length))

    assert len(reader._templates) <= TEMPLATES_MAX


def test_similar_events_are_read_with_a_template(monkeypatch):
    """Only the first one is parsed."""
    reader = PositionReader()
    reader.position_of(message(300, b"first"))
    monkeypatch.setattr(reader, "_learn", None)
    found, end = reader.position_of(message(301, b"second"))

    assert found == (301, b"90300", TIME_MS + 301, NO_KEY)
    assert end == len(position(301))


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ({}, [None, None]),
        ({"x_opt_partition_key": "one"}, ["one", "one"]),
        ({"x_opt_partition_key": ""}, ["", ""]),
        ({"x_opt_partition_key": "é" * 200}, ["é" * 200] * 2),
        ({"x_opt_partition_key": Long(7)}, ["7", "7"]),
    ],
)
def test_reading_the_partition_key_parses_no_sections(monkeypatch, more, keys):
    """That would cost several times as much as the rest of an event."""
    monkeypatch.setattr(wire_event, "EncodedMessage", None)
    events = EventReader().read([message(number, b"body", **more) for number in (300, 301)])

    assert [event.partition_key for event in events] == keys


def test_the_end_of_the_partition_is_read_from_delivery_annotations():
    """``None`` without them, and for invalid bytes."""
    delivery = section(
        0x71,
        {
            Symbol("last_enqueued_sequence_number"): Long(9),
            Symbol("last_enqueued_offset"): "5000",
            Symbol("last_enqueued_time_utc"): Timestamp(TIME_MS),
        },
    )
    newest = last_enqueued_in(delivery + message(3))

    assert newest is not None
    assert (newest.sequence_number, newest.offset) == (9, "5000")
    assert last_enqueued_in(message(3)) is None
    assert last_enqueued_in(b"noise") is None
