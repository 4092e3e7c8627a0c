"""Read sequence number, offset, time and partition key of an encoded event, at low cost.

The events of a partition resemble each other: their annotations have the same order and differ in a
few values of constant size. So the annotations of the first event are decoded entry by entry and
become a *template*: the bytes that must be the same in the next event, and where its values are. A
template reads an event by one call of ``struct``. An event that no template matches is decoded
entry by entry again, and becomes a new template.
"""

import struct
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, NamedTuple

from eventproc._base.amqp import MESSAGE_ANNOTATIONS, MalformedError, sections_of, skip
from eventproc.sources._amqp.values import decode
from eventproc.sources.eventhubs._event import ENQUEUED_TIME, OFFSET, PARTITION_KEY, SEQUENCE_NUMBER

TEMPLATES_MAX: Final = 64
"""Most templates to keep. One is needed for each combination of the lengths of offset and partition
key."""

_NAMES: Final = (SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, PARTITION_KEY)
_NUMBERED: Final = (SEQUENCE_NUMBER, ENQUEUED_TIME)
"""A tuple and not a set: the name of a damaged entry may be a list, which has no hash."""

_NUMBERS: Final = {b"\x55": "b", b"\x81": "q", b"\x83": "q"}
_TEXTS: Final = (b"\xa1", b"\xa0", b"\xa3")

EncodedPosition = tuple[object, object, object, object]
"""Sequence number, offset, enqueued time and partition key, encoded. The partition key of an event
without one is ``NO_KEY`` or ``None``; an empty partition key is an empty ``str``."""

NO_KEY: Final = b""


_BEFORE: Final = (b"\x00\x53\x70", b"\x00\x53\x71")
_SMALL: Final = (b"\xc1", b"\xc0")
_ANNOTATIONS: Final = b"\x00\x53\x72"


class AnnotationTemplate(NamedTuple):
    """Reads annotations whose names, types and lengths are those that it was made from."""

    size: int
    read: Callable[[bytes, int], tuple[Any, ...]]
    constants_of: Callable[[tuple[Any, ...]], object]
    constants: object
    position_of: Callable[[tuple[Any, ...]], EncodedPosition]


class PositionReader:
    """Reads the positions of the events of one link."""

    def __init__(self) -> None:
        self._templates: dict[bytes, AnnotationTemplate] = {}

    def position_of(self, payload: bytes) -> tuple[EncodedPosition, int]:
        """Return an event's position, with ``None`` for a missing value, and where annotations end.

        Raises:
            MalformedError: the bytes are not a message.
        """
        at = 0
        while payload.startswith(_BEFORE, at):
            # Nearly always a map or list of less than 256 bytes: a call of ``skip`` would double
            # the cost of this function.
            is_small = payload.startswith(_SMALL, at + 3) and at + 4 < len(payload)
            at = at + 5 + payload[at + 4] if is_small else skip(payload, at + 3)
        if not payload.startswith(_ANNOTATIONS, at):
            return self._search(payload)
        at += 3
        template = self._templates.get(payload[at : at + 5])
        if template is not None and at + template.size <= len(payload):
            fields = template.read(payload, at)
            if template.constants_of(fields) == template.constants:
                return template.position_of(fields), at + template.size
        return self._learn(payload, at)

    def _search(self, payload: bytes) -> tuple[EncodedPosition, int]:
        """Search all sections for the annotations."""
        for descriptor, begin, _ in sections_of(payload):
            if descriptor == MESSAGE_ANNOTATIONS:
                return self._learn(payload, begin)
        return (None, None, None, None), 0

    def _learn(self, payload: bytes, at: int) -> tuple[EncodedPosition, int]:
        """Decode entry by entry, and keep a template for the next events of the same form."""
        annotations, end = decode(payload, at)
        if not isinstance(annotations, dict):
            raise MalformedError("the annotations of a message are not a map")
        template = _template_of(payload, at, end)
        if template is not None:
            if len(self._templates) >= TEMPLATES_MAX:
                self._templates.clear()
            self._templates[payload[at : at + 5]] = template
        number, offset, enqueued_ms, key = map(annotations.get, _NAMES)
        return (number, offset, enqueued_ms, "" if key == NO_KEY else key), end


def _template_of(payload: bytes, at: int, end: int) -> AnnotationTemplate | None:
    """Make a template of these annotations; ``None`` if their form is not the usual one."""
    form = _Form(payload, at)
    position: dict[bytes, int] = {}
    entry = at + (_SMALL_MAP_HEAD if payload[at] == _SMALL_MAP else _LARGE_MAP_HEAD)
    while entry < end:
        begin = skip(payload, entry)
        name, _ = decode(payload, entry)
        entry = skip(payload, begin)
        constructor = payload[begin : begin + 1]
        if name in _NUMBERED and constructor in _NUMBERS:
            position[name] = form.value(begin + 1, _NUMBERS[constructor])
        elif name == OFFSET and constructor in _TEXTS:
            position[name] = form.value(begin + 2, f"{entry - begin - 2}s")
        elif name == PARTITION_KEY:
            if constructor not in _TEXTS or entry == begin + 2:
                return None
            position[name] = form.value(begin + 2, f"{entry - begin - 2}s")
        elif constructor in _TEXTS:
            form.ignore(begin + 2, entry)
    if PARTITION_KEY not in position:
        position[PARTITION_KEY] = form.value(end, "0s")
    form.end(end)
    if len(position) < len(_NAMES):
        return None
    shape = struct.Struct(">" + "".join(form.parts))
    constants_of = itemgetter(*form.constants)
    return AnnotationTemplate(
        shape.size,
        shape.unpack_from,
        constants_of,
        constants_of(shape.unpack_from(payload, at)),
        itemgetter(*map(position.__getitem__, _NAMES)),
    )


class _Form:
    """Builds the ``struct`` format of a template, from front to back."""

    def __init__(self, payload: bytes, at: int) -> None:
        self._payload = payload
        self._at = at
        self._count = 0
        self.parts: list[str] = []
        self.constants: list[int] = []

    def value(self, begin: int, part: str) -> int:
        """Add a value to read; return its index among the fields."""
        self.end(begin)
        self.parts.append(part)
        self._at = begin + struct.calcsize(">" + part)
        self._count += 1
        return self._count - 1

    def ignore(self, begin: int, end: int) -> None:
        """Add bytes that may differ and are not read."""
        self.end(begin)
        self.parts.append(f"{end - begin}x")
        self._at = end

    def end(self, at: int) -> None:
        """Add the bytes up to index *at* as a constant: they must be the same in the next event."""
        self.constants.append(self._count)
        self.parts.append(f"{at - self._at}s")
        self._at = at
        self._count += 1


_SMALL_MAP, _SMALL_MAP_HEAD, _LARGE_MAP_HEAD = 0xC1, 3, 9
