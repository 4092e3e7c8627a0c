"""The sections of an encoded message: located by their sizes, and decoded on demand."""

from collections.abc import Iterator
from typing import Any, Final

from eventproc._base.amqp import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    MalformedError,
    sections_of,
    skip,
)
from eventproc.sources._amqp.fields import sequence_body, value_body
from eventproc.sources._amqp.values import decode

_KINDS: Final = {
    DELIVERY_ANNOTATIONS: dict,
    MESSAGE_ANNOTATIONS: dict,
    PROPERTIES: list,
    APPLICATION_PROPERTIES: dict,
}

_BEFORE_BODY: Final = tuple(bytes([0, 0x53, section]) for section in range(0x70, DATA))
_DATA: Final = b"\x00\x53\x75\xa0"
_LARGE_DATA: Final = b"\x00\x53\x75\xb0"


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
