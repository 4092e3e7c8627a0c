"""Where an encoded event stands in its partition: read from each one, so it must cost little.

The events of a partition resemble each other: their annotations come in one order and differ in a
few values of constant size. So the first event is read entry by entry, and what is found becomes a
*stencil*: what must be the same in the next event, and where its values are. A stencil reads by one
call into C; an event that it does not fit is read entry by entry again, and makes a new one.
"""

import struct
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, NamedTuple

from eventproc.sources.eventhubs.amqp_values import MalformedError, decode, skip
from eventproc.sources.eventhubs.event import ENQUEUED_TIME, OFFSET, SEQUENCE_NUMBER
from eventproc.sources.eventhubs.sections import MESSAGE_ANNOTATIONS, sections_of

STENCILS_MAX: Final = 64
"""One is needed for each combination of lengths: of offsets, and of partition keys."""

_NUMBERS: Final = {b"\x55": "b", b"\x81": "q", b"\x83": "q"}
_TEXTS: Final = (b"\xa1", b"\xa0", b"\xa3")

Place = tuple[object, object, object]
"""Sequence number, offset and enqueued time, as they were encoded."""


_BEFORE: Final = (b"\x00\x53\x70", b"\x00\x53\x71")
_SMALL: Final = (b"\xc1", b"\xc0")
_ANNOTATIONS: Final = b"\x00\x53\x72"


class Stencil(NamedTuple):
    """How to read annotations that look like those it was made from."""

    size: int
    read: Callable[[bytes, int], tuple[Any, ...]]
    constants_of: Callable[[tuple[Any, ...]], object]
    constants: object
    place_of: Callable[[tuple[Any, ...]], Place]


class PlaceReader:
    """Reads places; for one link."""

    def __init__(self) -> None:
        self._stencils: dict[bytes, Stencil] = {}

    def place_of(self, payload: bytes) -> tuple[Place, int]:
        """Return what the annotations say, ``None`` where they do not, and where they end.

        Raises:
            MalformedError: the bytes are no message.
        """
        at = 0
        while payload.startswith(_BEFORE, at):
            # Nearly always a map or a list of less than 256 bytes; a call would double the price.
            is_small = payload.startswith(_SMALL, at + 3) and at + 4 < len(payload)
            at = at + 5 + payload[at + 4] if is_small else skip(payload, at + 3)
        if not payload.startswith(_ANNOTATIONS, at):
            return self._place_anywhere(payload)
        at += 3
        stencil = self._stencils.get(payload[at : at + 5])
        if stencil is not None and at + stencil.size <= len(payload):
            fields = stencil.read(payload, at)
            if stencil.constants_of(fields) == stencil.constants:
                return stencil.place_of(fields), at + stencil.size
        return self._learn(payload, at)

    def _place_anywhere(self, payload: bytes) -> tuple[Place, int]:
        """Find annotations that are not where they are always."""
        for descriptor, begin, _ in sections_of(payload):
            if descriptor == MESSAGE_ANNOTATIONS:
                return self._learn(payload, begin)
        return (None, None, None), 0

    def _learn(self, payload: bytes, at: int) -> tuple[Place, int]:
        """Read entry by entry, and keep a stencil for the next that look the same."""
        annotations, end = decode(payload, at)
        if not isinstance(annotations, dict):
            raise MalformedError("the annotations of a message are no map")
        stencil = _stencil_of(payload, at, end)
        if stencil is not None:
            if len(self._stencils) >= STENCILS_MAX:
                self._stencils.clear()
            self._stencils[payload[at : at + 5]] = stencil
        place = (annotations.get(name) for name in (SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME))
        return tuple(place), end  # type: ignore[return-value] # three of them


def _stencil_of(payload: bytes, at: int, end: int) -> Stencil | None:
    """Make a stencil of these annotations; ``None`` if they are not as they always are."""
    form = _Form(payload, at)
    place: dict[bytes, int] = {}
    entry = at + (_SMALL_MAP_HEAD if payload[at] == _SMALL_MAP else _LARGE_MAP_HEAD)
    while entry < end:
        begin = skip(payload, entry)
        name, _ = decode(payload, entry)
        entry = skip(payload, begin)
        constructor = payload[begin : begin + 1]
        if name in {SEQUENCE_NUMBER, ENQUEUED_TIME} and constructor in _NUMBERS:
            place[name] = form.value(begin + 1, _NUMBERS[constructor])
        elif name == OFFSET and constructor in _TEXTS:
            place[name] = form.value(begin + 2, f"{entry - begin - 2}s")
        elif constructor in _TEXTS:
            form.ignore(begin + 2, entry)
    form.end(end)
    if len(place) < len((SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME)):
        return None
    shape = struct.Struct(">" + "".join(form.parts))
    constants_of = itemgetter(*form.constants)
    return Stencil(
        shape.size,
        shape.unpack_from,
        constants_of,
        constants_of(shape.unpack_from(payload, at)),
        itemgetter(place[SEQUENCE_NUMBER], place[OFFSET], place[ENQUEUED_TIME]),
    )


class _Form:
    """Collects the parts of a stencil's form, front to back."""

    def __init__(self, payload: bytes, at: int) -> None:
        self._payload = payload
        self._at = at
        self._count = 0
        self.parts: list[str] = []
        self.constants: list[int] = []

    def value(self, begin: int, part: str) -> int:
        """Note a value that is wanted; return its place among the fields."""
        self.end(begin)
        self.parts.append(part)
        self._at = begin + struct.calcsize(">" + part)
        self._count += 1
        return self._count - 1

    def ignore(self, begin: int, end: int) -> None:
        """Note what may differ and is of no interest."""
        self.end(begin)
        self.parts.append(f"{end - begin}x")
        self._at = end

    def end(self, at: int) -> None:
        """Everything up to here must be the same in the next event."""
        self.constants.append(self._count)
        self.parts.append(f"{at - self._at}s")
        self._at = at
        self._count += 1


_SMALL_MAP, _SMALL_MAP_HEAD, _LARGE_MAP_HEAD = 0xC1, 3, 9
