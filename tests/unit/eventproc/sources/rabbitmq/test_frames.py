"""Frames that pamqp cannot read, repaired."""

import asyncio
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pamqp import frame
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from eventproc.sources.rabbitmq._frames import (
    UNREADABLE_HEADER,
    ReadableFrames,
    readable_header,
    readable_method,
)

HEADERS, TIMESTAMP = Basic.Properties.flags["headers"], Basic.Properties.flags["timestamp"]
CONTENT_TYPE = Basic.Properties.flags["content_type"]
LATE = (2**63).to_bytes(8)


def header(flags: int, properties: bytes) -> bytes:
    """Return the payload of a message's header, of a body of 5 bytes."""
    return struct.pack(">HHQH", 60, 0, 5, flags) + properties


def table(*entries: bytes) -> bytes:
    """Return a table."""
    content = b"".join(entries)
    return len(content).to_bytes(4) + content


def read(payload: bytes) -> ContentHeader:
    """Return what the client reads."""
    content = ContentHeader()
    content.unmarshal(payload)
    return content


@given(st.integers(0, 2**16 - 1), st.binary())
@example(HEADERS, table(b"\x01a" * 200))
@example(CONTENT_TYPE | TIMESTAMP, b"\x01")
@example(HEADERS | 1, table(b"\x01a" * 200))
@example(HEADERS | TIMESTAMP, table(b"\x01aS", b"\x00\x00\x00\x09"))
def test_every_header_can_be_read(flags, properties):
    """The broker passes on what a publisher sent, without a look at it."""
    assert read(readable_header(header(flags, properties))).body_size == 5


def test_a_header_that_can_be_read_stays_as_it_is():
    """Every byte of it."""
    payload = header(HEADERS, table(b"\x01aS", table(b"x")))

    assert readable_header(payload) is payload


@pytest.mark.parametrize(
    ("entries", "kept", "missing"),
    [
        ([b"\x01aT" + LATE, b"\x01bI\x00\x00\x00\x07"], {"b": 7}, "header a"),
        ([b"\x01bI\x00\x00\x00\x07", b"\x01a?", b"\x01ct\x01"], {"b": 7}, "headers from a on"),
        ([b"\x01\xe9t\x01", b"\x01bt\x01"], {"b": True}, r"header \xe9"),
        ([b"\x01aF" + table(b"\x01cT", LATE), b"\x01bt\x01"], {"b": True}, "header a"),
    ],
)
def test_the_other_headers_are_kept(entries, kept, missing):
    """As many as can be told apart."""
    found = read(readable_header(header(HEADERS, table(*entries)))).properties.headers

    assert found == {**kept, UNREADABLE_HEADER: missing}


def test_names_of_a_delivery_become_text():
    """Of the same length."""
    start = b"\x00\x3c\x00\x3c\x03tag" + (1).to_bytes(8) + b"\x00"
    payload = readable_method(start + b"\x02\xc3\xa9" + b"\x03\xe9t\xe9")
    _, _, method = frame.unmarshal(framed(1, payload))

    assert isinstance(method, Basic.Deliver)
    assert (method.exchange, method.routing_key) == ("\u00e9", "?t?")


def framed(kind: int, payload: bytes) -> bytes:
    """Return a frame of channel 3."""
    return struct.pack(">BHI", kind, 3, len(payload)) + payload + b"\xce"


async def test_a_stream_keeps_all_other_bytes():
    """The sizes that the client reads are those of the repaired frames."""
    odd = header(TIMESTAMP, LATE)
    others = framed(8, b"") + framed(3, b"\x02\x01 body") + framed(1, b"\x00\x0a\x00\x0a")
    reader = asyncio.StreamReader()
    reader.feed_data(framed(2, odd) + others)
    reader.feed_eof()
    stream = ReadableFrames(reader)
    received = b""
    while not stream.at_eof():
        start = await stream.readexactly(1)
        start += await stream.readexactly(6)
        received += start + await stream.readexactly(int.from_bytes(start[3:]) + 1)

    assert received == framed(2, readable_header(odd)) + others
