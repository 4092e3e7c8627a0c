"""The sections of an encoded message: located by their sizes, and decoded on demand."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from eventproc.sources._amqp.fields import sequence_body, value_body
from eventproc.sources._amqp.values import MalformedError, decode, skip

DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
"""AMQP 1.0, part 3, section 3.2: the last byte of a section's descriptor."""

_KINDS: Final = {
    DELIVERY_ANNOTATIONS: dict,
    MESSAGE_ANNOTATIONS: dict,
    PROPERTIES: list,
    APPLICATION_PROPERTIES: dict,
}

_BEFORE_BODY: Final = tuple(bytes([0, 0x53, section]) for section in range(0x70, DATA))
_DATA: Final = b"\x00\x53\x75\xa0"
_LARGE_DATA: Final = b"\x00\x53\x75\xb0"

_DESCRIPTOR_SIZE: Final = 3
_LARGE_DESCRIPTOR_SIZE: Final = 10


def sections_of(payload: bytes) -> Iterable[tuple[int, int, int]]:
    """Yield each section: its descriptor, and the indexes at which its value begins and ends.

    Raises:
        MalformedError: the bytes are not sections of a message.
    """
    at = 0
    while at < len(payload):
        if payload.startswith(b"\x00\x53", at) and at + 2 < len(payload):
            descriptor, begin = payload[at + 2], at + _DESCRIPTOR_SIZE
        elif payload.startswith(b"\x00\x80" + bytes(7), at) and at + 9 < len(payload):
            descriptor, begin = payload[at + 9], at + _LARGE_DESCRIPTOR_SIZE
        else:
            raise MalformedError(f"no section begins at byte {at} of the message")
        at = skip(payload, begin)
        yield descriptor, begin, at


class EncodedMessage:
    """An encoded message, whose sections are decoded on demand.

    If a section occurs twice, the last one counts, as with Azure's client. A body may consist of
    several sections.
    """

    def __init__(self, payload: bytes) -> None:
        """Locate the sections without decoding them.

        Raises:
            MalformedError: the bytes are not sections of a message.
        """
        self._payload = payload
        self._begin: dict[int, int] = {}
        self._bodies: dict[int, list[int]] = {}
        for descriptor, begin, _ in sections_of(payload):
            self._begin[descriptor] = begin
            if descriptor in {DATA, SEQUENCE}:
                self._bodies.setdefault(descriptor, []).append(begin)

    def one(self, descriptor: int) -> Any:  # noqa: ANN401 - as the service sent it
        """Decode a section; ``None`` if the message does not have it.

        Raises:
            MalformedError: it cannot be decoded, or is not of the kind that AMQP prescribes.
        """
        begin = self._begin.get(descriptor)
        value = None if begin is None else decode(self._payload, begin)[0]
        kind = _KINDS.get(descriptor, object)
        if value is not None and not isinstance(value, kind):
            raise MalformedError(
                f"section {descriptor:#x} is a {type(value).__name__}, not a {kind.__name__}"
            )
        return value

    def body(self) -> bytes:
        """Decode the body: data, text and binary values unchanged; all others as JSON."""
        if DATA in self._bodies:
            parts = list(self._all(DATA))
            if not all(isinstance(part, bytes) for part in parts):
                raise MalformedError("a data section is not binary")
            return b"".join(parts)
        if SEQUENCE in self._bodies:
            return sequence_body(self._all(SEQUENCE))
        return value_body(self.one(VALUE))

    def _all(self, descriptor: int) -> Iterator[Any]:
        return (decode(self._payload, begin)[0] for begin in self._bodies[descriptor])


def body_of(payload: bytes, at: int) -> bytes:
    """Decode the body of a message, whose sections before index *at* are only annotations.

    If the message ends with a single data section, only that one is decoded.

    Raises:
        MalformedError: the bytes are not sections of a message.
    """
    while not payload.startswith(_DATA, at):
        if payload.startswith(_BEFORE_BODY, at):
            at = skip(payload, at + 3)
            continue
        begin = at + 8
        if payload.startswith(_LARGE_DATA, at) and (
            begin + int.from_bytes(payload[at + 4 : begin]) == len(payload)
        ):
            return payload[begin:]
        return EncodedMessage(payload).body()
    begin = at + 5
    if begin <= len(payload) == begin + payload[begin - 1]:
        return payload[begin:]
    return EncodedMessage(payload).body()
