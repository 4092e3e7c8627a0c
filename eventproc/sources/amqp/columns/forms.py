"""The patterns of a message, and of a list or map inside of one."""

from collections.abc import Sequence
from typing import Final

from eventproc.sources.amqp.columns.pattern import Pattern, PatternMaker
from eventproc.sources.amqp.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    sections_of,
)
from eventproc.sources.amqp.values import decode

HEADER: Final = 0x70
FOOTER: Final = 0x78

BODY: Final = "body"
PROPERTIES_LIST: Final = "properties"
APPLICATION_MAP: Final = "application-properties"
ANNOTATION: Final = "annotation "
"""Before the name of each annotation among the fields of a message."""

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


def message_form(payload: bytes) -> Pattern | None:
    """Return the pattern of a message; ``None`` if its sections are not the usual ones.

    Its fields are ``BODY``, ``PROPERTIES_LIST`` and ``APPLICATION_MAP`` without constructor and
    size, and each annotation.

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
        maker.pass_over(begin - maker.at)
        if descriptor != MESSAGE_ANNOTATIONS:
            maker.value(_NAMES[descriptor])
        elif not _entries(maker, payload, ANNOTATION):
            return None
    return maker.made() if DATA in seen else None


def map_form(payload: bytes) -> Pattern | None:
    """Return the pattern of the content of a map, whose fields have the names of its entries.

    Args:
        payload: The encoded map.

    Raises:
        MalformedError: the bytes are not a map.
    """
    maker = PatternMaker(payload)
    return maker.made() if _entries(maker, payload, "") else None


def list_form(payload: bytes, names: Sequence[str]) -> Pattern | None:
    """Return the pattern of a list, whose fields have these names; nulls are left out.

    Raises:
        MalformedError: the bytes are not a list.
    """
    maker = PatternMaker(payload)
    count = maker.open()
    if count > len(names):
        return None
    for name in names[:count]:
        if payload[maker.at] == _NULL:
            maker.pass_over(1)
        else:
            maker.value(name)
    maker.close()
    return maker.made()


_NULL: Final = 0x40
_SIMPLE: Final = range(0x4, 0xC)
"""The upper four bits of constructors of values that have no values inside."""

_NAME_CONSTRUCTORS: Final = (0xA1, 0xA3, 0xB1, 0xB3)


def _entries(maker: PatternMaker, payload: bytes, prefix: str) -> bool:
    """Add a map entry by entry; return whether it has text names, each of them once."""
    names: set[str] = set()
    decode(payload, maker.at)  # It checks the values, of which a pattern knows only the sizes.
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
        maker.pass_over(end - maker.at)
        if prefix and payload[maker.at] >> 4 not in _SIMPLE:
            return False
        maker.value(text)
    maker.close()
    return True
