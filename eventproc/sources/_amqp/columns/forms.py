"""The patterns of a message, and of a list or map inside of one."""

from collections.abc import Sequence
from typing import Final

from eventproc._base.amqp import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    sections_of,
)
from eventproc.sources._amqp.columns.pattern import Pattern, PatternMaker
from eventproc.sources._amqp.values import decode

BODY: Final = "body"
PROPERTIES_LIST: Final = "properties"
APPLICATION_MAP: Final = "application-properties"
ANNOTATION: Final = "annotation "
"""Prefix of the field names of annotations in a message's pattern."""

_SKIPPED: Final = {HEADER: "header", DELIVERY_ANNOTATIONS: "delivery", FOOTER: "footer"}
_NAMES: Final = {
    **_SKIPPED,
    PROPERTIES: PROPERTIES_LIST,
    APPLICATION_PROPERTIES: APPLICATION_MAP,
    DATA: BODY,
}
_MAPS: Final = (0xC1, 0xD1)
_LISTS: Final = (0xC0, 0xD0, 0x45)
_DATA: Final = (0xA0, 0xB0)
_CONSTRUCTORS: Final = {
    MESSAGE_ANNOTATIONS: _MAPS,
    APPLICATION_PROPERTIES: _MAPS,
    PROPERTIES: _LISTS,
    DATA: _DATA,
}


def message_pattern(payload: bytes) -> Pattern | None:
    """Return the pattern of a message; ``None`` if its sections are not the usual ones.

    Its fields are ``BODY``, ``PROPERTIES_LIST`` and ``APPLICATION_MAP``, and each annotation.

    Raises:
        MalformedError: the bytes are not a message.
    """
    maker = PatternMaker(payload)
    seen = set()
    for descriptor, begin, _ in sections_of(payload):
        constructors = _CONSTRUCTORS.get(descriptor)
        if descriptor in seen or (
            payload[begin] not in constructors if constructors else descriptor not in _SKIPPED
        ):
            return None
        seen.add(descriptor)
        maker.constant(begin - maker.at)
        if descriptor != MESSAGE_ANNOTATIONS:
            maker.field(_NAMES[descriptor])
        elif not _entries(maker, payload, ANNOTATION):
            return None
    return maker.pattern() if DATA in seen else None


def map_pattern(payload: bytes) -> Pattern | None:
    """Return the pattern of a map; the names of its entries are the names of the fields.

    Args:
        payload: The encoded map.

    Raises:
        MalformedError: the bytes are not a map.
    """
    maker = PatternMaker(payload)
    return maker.pattern() if _entries(maker, payload, "") else None


def list_pattern(payload: bytes, names: Sequence[str]) -> Pattern | None:
    """Return the pattern of a list with these field names; a null has no field.

    Raises:
        MalformedError: the bytes are not a list.
    """
    maker = PatternMaker(payload)
    count = maker.open()
    if count > len(names):
        return None
    for name in names[:count]:
        if payload[maker.at] == _NULL:
            maker.constant(1)
        else:
            maker.field(name)
    maker.close()
    return maker.pattern()


_NULL: Final = 0x40
_SIMPLE: Final = range(0x4, 0xC)
"""The upper four bits of the constructors of values that are not lists, maps or arrays."""

_NAME_CONSTRUCTORS: Final = (0xA1, 0xA3, 0xB1, 0xB3)


def _entries(maker: PatternMaker, payload: bytes, prefix: str) -> bool:
    """Add a map's entries to the pattern; return whether their names are texts, and distinct."""
    names: set[str] = set()
    decode(payload, maker.at)  # To check the values: a pattern knows only their sizes.
    count = maker.open()
    if count % 2:
        return False
    for _ in range(count // 2):
        if payload[maker.at] not in _NAME_CONSTRUCTORS:
            return False
        name, end = decode(payload, maker.at)
        assert isinstance(name, bytes)
        text = prefix + name.decode(errors="replace")
        if text in names:
            return False
        names.add(text)
        maker.constant(end - maker.at)
        if prefix and payload[maker.at] >> 4 not in _SIMPLE:
            return False
        maker.field(text)
    maker.close()
    return True
