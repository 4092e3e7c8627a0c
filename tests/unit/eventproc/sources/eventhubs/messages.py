"""Encoded messages and frames as the service sends them, made by the emulator's encoder."""

import struct
from typing import Any

from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.values import Described, Long, Symbol, Timestamp, ULong, Value

TIME_MS = 1_795_205_646_471


def section(descriptor: int, value: Any) -> bytes:  # list is invariant, so Value does not fit here
    return encode(Described(ULong(descriptor), value))


def position(number: int, **more: Value) -> bytes:
    """The annotations that have an event's position."""
    entries: dict[Value, Value] = {
        Symbol("x-opt-sequence-number"): Long(number),
        Symbol("x-opt-offset"): str(number * 300),
        Symbol("x-opt-enqueued-time"): Timestamp(TIME_MS + number),
    }
    entries |= {Symbol(name.replace("_", "-")): value for name, value in more.items()}
    return section(0x72, entries)


def message(number: int, body: bytes = b"", **more: Value) -> bytes:
    """An event as an encoded message."""
    return position(number, **more) + section(0x75, body)


def frame(body: bytes, channel: int = 1, *, body_at: int = 2, kind: int = 0) -> bytes:
    extended = bytes(4 * body_at - 8)
    return struct.pack(">IBBH", 4 * body_at + len(body), body_at, kind, channel) + extended + body
