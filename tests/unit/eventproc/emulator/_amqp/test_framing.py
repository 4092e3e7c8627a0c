"""Frames, in whatever pieces they arrive; performatives with every field."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.amqp import MalformedError
from eventproc.emulator._amqp.framing import (
    AMQP_HEADER,
    HEARTBEAT,
    SASL_HEADER,
    Frame,
    FrameParser,
    ProtocolHeader,
    encode_frame,
)
from eventproc.emulator._amqp.performatives import (
    ACCEPTED,
    AmqpError,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
    decode_performative,
)
from eventproc.emulator._amqp.values import Described, Symbol, UByte, UInt, ULong, decode
from eventproc.emulator._links.incoming_link import accepted_frame

frames = st.one_of(
    st.sampled_from([AMQP_HEADER, SASL_HEADER]).map(lambda raw: (raw, ProtocolHeader(raw))),
    st.builds(Frame, st.sampled_from([0, 1]), st.integers(0, 0xFFFF), st.binary(max_size=200)).map(
        lambda frame: (encode_frame(frame.body, frame.channel, frame.kind), frame)
    ),
)


@given(st.lists(frames, max_size=8), st.data())
def test_the_frames_of_a_stream_do_not_depend_on_its_pieces(expected, data):
    """The network may cut it anywhere."""
    stream = b"".join(raw for raw, _ in expected)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    parser = FrameParser()

    found: list[object] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found.extend(parser.feed(stream[start:end]))

    assert found == [item for _, item in expected]


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_frames_or_malformed(pieces):
    """No other error is raised, and never more than one frame is buffered."""
    parser = FrameParser(512)
    try:
        for piece in pieces:
            list(parser.feed(piece))
    except MalformedError:
        return

    assert len(parser._pending) < 512


def test_a_frame_above_the_limit_is_refused_before_it_is_complete():
    """Its size is in its first bytes."""
    parser = FrameParser(1024)

    with pytest.raises(MalformedError):
        list(parser.feed(encode_frame(b"x" * 2000)[:100]))


def test_a_heartbeat_is_an_empty_frame():
    """Of eight bytes."""
    assert list(FrameParser().feed(HEARTBEAT)) == [Frame(0, 0, b"")]


ERROR = AmqpError("amqp:not-found", "gone")
PERFORMATIVES = [
    Open("me", "host", 65536, 10, 1000, properties={Symbol("a"): "b"}),
    Begin(None, 0, 100, 100, 255),
    Attach("link", 3, role=True, source=Source("a", filter={}), target=Target("b")),
    Flow(None, 10, 0, 10, 3, 0, 100, None),
    Transfer(3, 1, b"tag", 0, settled=True, more=True),
    Disposition(role=True, first=1, last=2, settled=True, state=ACCEPTED),
    Detach(3, closed=True, error=ERROR),
    End(ERROR),
    Close(),
]


@pytest.mark.parametrize("performative", PERFORMATIVES, ids=lambda each: type(each).__name__)
def test_a_decoded_performative_equals_the_encoded_one(performative):
    """The payload begins after it."""
    decoded, at = decode_performative(performative.described() + b"payload")

    assert decoded == performative
    assert at == len(performative.described())


@pytest.mark.parametrize("performative", PERFORMATIVES, ids=lambda each: type(each).__name__)
def test_every_field_is_encoded(performative):
    """Azure's Python client reads fields by position, so trailing nulls must be there, too."""
    described, _ = decode(performative.described())

    assert isinstance(described, Described)
    assert isinstance(described.value, list)
    assert len(described.value) == len(dataclasses.fields(performative))


@pytest.mark.parametrize(
    "fields",
    [
        ["link", UInt(1)],  # the role is missing
        ["link", "1", True],  # a handle that is a string
        [None, UInt(1), True],  # no name
        ["link", UInt(1), True, None, None, Described(ULong(0x28), 5)],  # a source without fields
        ["link", UInt(1), True, *[None] * 12],  # a field too many
        ["link", ULong(2**40), True],  # a handle beyond 32 bits
        {},
    ],
)
def test_a_performative_with_wrong_fields_is_malformed(fields):
    """Types and presence are checked once, when it is decoded."""
    with pytest.raises(MalformedError):
        Attach.of_fields(fields)


def test_a_performative_without_its_trailing_fields_is_decoded():
    """AMQP allows that; defaults are used."""
    attach = Attach.of_fields(["link", UInt(1), False, UByte(1)])

    assert (attach.snd_settle_mode, attach.rcv_settle_mode, attach.source) == (1, 0, None)


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF))
def test_the_precomputed_disposition_equals_the_encoded_one(channel, delivery_id):
    """It is a shortcut for the most common answer."""
    (frame,) = FrameParser().feed(accepted_frame(channel, delivery_id))
    assert isinstance(frame, Frame)
    decoded, _ = decode_performative(frame.body)

    assert frame.channel == channel
    assert decoded == Disposition(role=True, first=delivery_id, settled=True, state=ACCEPTED)
