"""Parsing frames from a stream of bytes: each event complete, in order, and no other frame lost."""

import struct
from typing import NamedTuple, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventproc._base.amqp import MalformedError
from eventproc.sources.eventhubs._direct_path.column_frames import ColumnFrameParser
from eventproc.sources.eventhubs._direct_path.frames import FRAME_SIZE_MAX, FrameParser, Parser
from tests.unit.eventproc.sources.eventhubs.messages import frame

CHANNEL = 3
HANDLE = 2


class Transfer(NamedTuple):
    """A transfer frame in one of the many forms that the standard allows."""

    payload: bytes
    handle: bytes = b"\x52\x02"
    delivery_id: bytes = b"\x52\x07"
    tag: bytes = b"\xa0\x04abcd"
    message_format: bytes = b"\x43"
    settled: bytes = b"\x41"
    more: bytes = b"\x42"
    mode: bytes = b"\x40"
    state: bytes = b"\x40"
    resume: bytes = b"\x42"
    aborted: bytes = b"\x42"
    batchable: bytes = b"\x42"
    given_count: int = 11
    is_large: bool = False
    has_large_descriptor: bool = False

    def encoded(self, *, channel: int = CHANNEL, body_at: int = 2) -> bytes:
        fields = b"".join(cast("tuple[bytes, ...]", self[1 : 1 + self.given_count]))
        if self.is_large:
            counted = b"\xd0" + struct.pack(">II", len(fields) + 4, self.given_count)
        else:
            counted = b"\xc0" + bytes([len(fields) + 1, self.given_count])
        descriptor = b"\x80" + bytes(7) if self.has_large_descriptor else b"\x53"
        body = b"\x00" + descriptor + b"\x14" + counted + fields + self.payload
        return frame(body, channel, body_at=body_at)


numbers = st.sampled_from([b"\x40", b"\x43", b"\x52\x09", b"\x70\x00\x01\x02\x03"])
no = st.sampled_from([b"\x40", b"\x42", b"\x56\x00"])
either = st.one_of(no, st.sampled_from([b"\x41", b"\x56\x01"]))
# An event may contain anything, also bytes that look like fields of a transfer.
payloads = st.one_of(
    st.binary(max_size=40), st.sampled_from([b"\x42\x40", b"\x41", b"\x00\x53\x14"])
)
whole = st.builds(
    Transfer,
    payload=payloads,
    handle=st.sampled_from([b"\x52\x02", b"\x70\x00\x00\x00\x02"]),
    delivery_id=numbers,
    tag=st.one_of(
        st.just(b"\x40"), st.binary(max_size=32).map(lambda tag: b"\xa0" + bytes([len(tag)]) + tag)
    ),
    message_format=numbers,
    settled=either,
    more=no,
    mode=st.sampled_from([b"\x40", b"\x50\x00"]),
    state=st.sampled_from([b"\x40", b"\x00\x53\x24\x45"]),
    resume=either,
    aborted=no,
    batchable=either,
    given_count=st.integers(1, 11),
    is_large=st.booleans(),
    has_large_descriptor=st.booleans(),
)
others = st.sampled_from(
    [
        frame(b"", 0),
        frame(b"\x00\x53\x13\x45", CHANNEL),
        frame(b"\x00\x53\x16\xc0\x03\x01\x52\x02", CHANNEL),
        Transfer(b"elsewhere").encoded(channel=CHANNEL + 1),
        Transfer(b"another link's", handle=b"\x52\x01").encoded(),
        Transfer(b"not an AMQP frame").encoded()[:5]
        + b"\x01"
        + Transfer(b"not an AMQP frame").encoded()[6:],
    ]
)


def parse_all(stream: bytes, cuts: list[int]) -> tuple[list[bytes], list[bytes], int]:
    """Parse the stream in pieces; return events, other frames, and the number of transfers.

    Both parsers must find the same.
    """
    found = parsed_by(FrameParser(CHANNEL, HANDLE), stream, cuts)

    assert parsed_by(ColumnFrameParser(FrameParser(CHANNEL, HANDLE)), stream, cuts) == found
    return found


def parsed_by(
    parser: Parser, stream: bytes, cuts: list[int]
) -> tuple[list[bytes], list[bytes], int]:
    events: list[bytes] = []
    rest: list[bytes] = []
    left, transfer_count = b"", 0
    edges = sorted(cut % (len(stream) + 1) for cut in cuts)
    for begin, end in zip([0, *edges], [*edges, len(stream)], strict=True):
        left += stream[begin:end]
        found = parser.parse(left)
        left = left[found.used :]
        events += found.payloads
        rest += found.others
        transfer_count += found.transfer_count

        assert found.delivery_count == len(found.payloads)
    assert left == b""
    return events, rest, transfer_count


@given(st.lists(st.one_of(whole, others)), st.lists(st.integers(0, 2000), max_size=8))
def test_every_form_of_a_transfer_is_parsed(frames, cuts):
    """Mixed with other frames in any way, and wherever the stream is cut."""
    sent = [each for each in frames if isinstance(each, Transfer)]
    stream = b"".join(each.encoded() if isinstance(each, Transfer) else each for each in frames)
    events, rest, transfer_count = parse_all(stream, cuts)

    assert events == [each.payload for each in sent]
    assert rest == [each for each in frames if not isinstance(each, Transfer)]
    assert transfer_count == len(sent)


@given(
    st.lists(st.tuples(st.one_of(whole, others), st.integers(1, 40)), max_size=4),
    st.lists(st.integers(0, 9000), max_size=3),
)
def test_runs_of_frames_of_one_size_are_parsed(runs, cuts):
    """As most streams consist of them; wherever a run ends, and wherever the stream is cut."""
    frames = [
        each.encoded() if isinstance(each, Transfer) else each
        for each, count in runs
        for _ in range(count)
    ]
    events, rest, _ = parse_all(b"".join(frames), cuts)

    assert events == [
        each.payload for each, count in runs if isinstance(each, Transfer) for _ in range(count)
    ]
    assert len(events) + len(rest) == len(frames)


@given(st.lists(st.binary(max_size=9), min_size=2, max_size=5), st.lists(st.integers(0, 300)))
def test_an_event_in_several_frames_is_joined(parts, cuts):
    """Frames of other links may lie between them."""
    frames = [Transfer(part, more=b"\x41", delivery_id=b"\x40") for part in parts[:-1]]
    frames.append(Transfer(parts[-1]))
    between = Transfer(b"another's", handle=b"\x52\x05").encoded()
    stream = between.join(each.encoded() for each in frames) + Transfer(b"next").encoded()
    events, rest, transfer_count = parse_all(stream, cuts)

    assert events == [b"".join(parts), b"next"]
    assert rest == [between] * (len(parts) - 1)
    assert transfer_count == len(parts) + 1


def test_an_aborted_transfer_gives_no_event():
    """It counts as a delivery, and the next event is complete."""
    parser = FrameParser(CHANNEL, HANDLE)
    frames = (Transfer(b"half", more=b"\x41"), Transfer(b"", aborted=b"\x41"), Transfer(b"next"))
    found = parser.parse(b"".join(each.encoded() for each in frames))

    assert found.payloads == [b"next"]
    assert (found.transfer_count, found.delivery_count) == (3, 2)


def test_a_frame_with_an_extended_header_is_parsed():
    """The standard allows it, although no known service sends one."""
    found = FrameParser(CHANNEL, HANDLE).parse(Transfer(b"event").encoded(body_at=4))

    assert found.payloads == [b"event"]


def test_common_transfers_take_the_fast_path(monkeypatch):
    """Those of the service and of the emulator."""
    monkeypatch.setattr(FrameParser, "parse_other", None)
    service = Transfer(b"event", handle=b"\x43", tag=b"\xa0\x10" + bytes(16), given_count=6)
    emulator = Transfer(b"event", handle=b"\x70" + bytes(4), delivery_id=b"\x70\x00\x00\x00\x01")

    assert FrameParser(CHANNEL, 0).parse(service.encoded()).payloads == [b"event"]
    assert FrameParser(CHANNEL, 0).parse(emulator.encoded()).payloads == [b"event"]

    both = service.encoded() * 3 + emulator.encoded() * 3
    parsed = ColumnFrameParser(FrameParser(CHANNEL, 0)).parse(both + bytes(7))

    assert list(parsed.payloads) == [b"event"] * 6


@pytest.mark.parametrize("size", [0, 7, FRAME_SIZE_MAX + 1, 0x41_4D_51_50])
def test_an_invalid_frame_size_is_malformed(size):
    """The parser would otherwise wait for the rest for ever."""
    with pytest.raises(MalformedError, match=str(size)):
        FrameParser(CHANNEL, HANDLE).parse(struct.pack(">II", size, 0x02000003))


@given(st.binary(max_size=60))
@example(b"\x00\x00\x00\x0c\x02\x00\x00\x03\x00\x53\x14\xc0")
@example(b"\x00\x00\x00\x0e\x02\x00\x00\x03\x00\x53\x14\xc0\xff\x02")
def test_any_bytes_are_frames_or_malformed(noise):
    """No other error is raised, and parsing ends."""
    parser = FrameParser(CHANNEL, HANDLE)
    same = ColumnFrameParser(FrameParser(CHANNEL, HANDLE))
    for stream in (noise, struct.pack(">II", len(noise) + 8, 0x02000003) + noise):
        try:
            found = parser.parse(stream)
        except MalformedError:
            with pytest.raises(MalformedError):
                same.parse(stream)
            return  # A link is closed after it.

        assert found.used <= len(stream)

        other = same.parse(stream)

        assert list(other.payloads) == found.payloads
        assert (other.others, other.used) == (found.others, found.used)
