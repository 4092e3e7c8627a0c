"""What the hub changes in a message: three annotations, and no other byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.amqp import MalformedError
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.message import BATCH_FORMAT, draft_of, drafts_of, read_message, store
from eventproc.emulator._amqp.values import Described, Long, Symbol, Timestamp, ULong
from tests.unit.eventproc.emulator.strategies import scalars, symbols, values

ASSIGNED = ("x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time")


def section(code, value):
    """Return one encoded section of a message."""
    return encode(Described(ULong(code), value))


annotations = st.dictionaries(
    symbols | st.sampled_from([Symbol(name) for name in ASSIGNED]), values
)
bodies = st.one_of(
    st.lists(st.binary(max_size=300), min_size=1, max_size=3).map(
        lambda parts: b"".join(section(0x75, part) for part in parts)
    ),
    st.lists(values, max_size=5).map(lambda elements: section(0x76, elements)),
    values.map(lambda value: section(0x77, value)),
)
after_annotations = st.tuples(
    st.just(b"") | st.lists(scalars, max_size=13).map(lambda fields: section(0x73, fields)),
    st.just(b"") | st.dictionaries(symbols, scalars).map(lambda pairs: section(0x74, pairs)),
    bodies,
    st.just(b"") | annotations.map(lambda pairs: section(0x78, pairs)),
).map(b"".join)
headers = st.just(b"") | st.just(section(0x70, [True]))


@given(headers, annotations, after_annotations, st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_stored_message_keeps_all_that_its_producer_wrote(
    header, own, rest, sequence_number, offset
):
    """Byte for byte, except that the hub sets three annotations."""
    draft = draft_of(header + section(0x72, own) + rest)

    event = store(draft, sequence_number, offset, 1234)

    assert event.payload.startswith(header)
    assert event.payload.endswith(rest)
    assert event.payload[: event.header_length] == header
    assert event.annotations == {
        **{name: value for name, value in own.items() if name not in ASSIGNED},
        "x-opt-sequence-number": Long(sequence_number),
        "x-opt-offset": str(offset),
        "x-opt-enqueued-time": Timestamp(1234),
    }


flat_annotations = st.dictionaries(
    symbols | st.sampled_from([Symbol(name) for name in ASSIGNED]), scalars, max_size=5
)
flat_bodies = st.binary(max_size=300).map(lambda body: section(0x75, body))


@given(st.lists(st.tuples(headers, flat_annotations, flat_bodies), max_size=5))
def test_a_batch_is_split_into_its_messages(events):
    """Each equals one that was sent alone; the test above has messages with nested values."""
    encoded = [header + section(0x72, own) + rest for header, own, rest in events]
    batch = b"".join(section(0x75, message) for message in encoded)

    assert drafts_of(batch, BATCH_FORMAT) == [draft_of(message) for message in encoded]


def test_messages_of_a_batch_get_its_partition_key():
    """Unless a message has a key of its own."""
    key = Symbol("x-opt-partition-key")
    plain, keyed = section(0x75, b"1"), section(0x72, {key: "own"}) + section(0x75, b"2")
    envelope = section(0x72, {key: "batch"})

    drafts = drafts_of(envelope + section(0x75, plain) + section(0x75, keyed), BATCH_FORMAT)

    assert [draft.partition_key for draft in drafts] == ["batch", "own"]
    assert store(drafts[0], 0, 0, 0).partition_key == "batch"


@given(st.binary(max_size=80), st.sampled_from([0, BATCH_FORMAT]))
def test_any_bytes_are_messages_or_malformed(raw, message_format):
    """No other error is raised."""
    try:
        drafts = drafts_of(raw, message_format)
    except MalformedError:
        return

    assert all(draft.rest for draft in drafts)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        section(0x70, [True]),  # no body
        section(0x75, b"x") + section(0x70, [True]),  # sections out of order
        section(0x79, b"x"),  # no section of a message
        section(0x72, "not a map") + section(0x75, b"x"),
        b"\x40",
    ],
)
def test_an_invalid_message_is_malformed(message):
    """No consumer must ever be sent one."""
    with pytest.raises(MalformedError):
        draft_of(message)


def test_an_event_in_the_log_can_be_decoded():
    """So tests need not decode messages by themselves."""
    message = section(0x74, {"n": Long(1)}) + section(0x75, b"ab") + section(0x75, b"c")

    event = store(draft_of(message), 5, 70, 1234)

    assert (event.body, event.application_properties, event.partition_key) == (
        b"abc",
        {"n": 1},
        None,
    )
    assert read_message(event.payload).data == [b"ab", b"c"]
