"""Described lists with named fields: how performatives are written and read. Pure.

Rule: we always write every field, nulls included. AMQP allows trailing nulls to be left out, but
azure-eventhub up to 5.15.1 reads fields by position and fails on a short list.
"""

import dataclasses
from typing import Any, ClassVar, Final, Self

from eventproc._base.amqp import MalformedError
from eventproc.emulator._amqp.encoding import encode, encode_list
from eventproc.emulator._amqp.values import (
    Array,
    Described,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
)

_MANDATORY: Final = "mandatory"
_LARGEST: Final[dict[type, int]] = {
    UByte: 0xFF,
    UShort: 0xFFFF,
    UInt: 0xFFFFFFFF,
    ULong: 0xFFFFFFFFFFFFFFFF,
}


class Composite:
    """A described list with named fields. ``WIRE`` gives each field's AMQP type, in order."""

    CODE: ClassVar[int]
    WIRE: ClassVar[tuple[type, ...]]

    def described(self) -> bytes:
        """Encode the composite, with every field."""
        elements = []
        for wire, field in zip(self.WIRE, dataclasses.fields(self), strict=True):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is None:
                elements.append(b"\x40")
            elif isinstance(value, Composite):
                elements.append(value.described())
            elif wire is object or isinstance(value, list | dict | Described):
                elements.append(encode(value))
            else:
                elements.append(encode(wire(value)))
        return b"\x00" + encode(ULong(self.CODE)) + encode_list(elements)

    @classmethod
    def of(cls, value: Value) -> Self:
        """Read the composite from a decoded value.

        Raises:
            MalformedError: It is another composite, or a field is missing or of the wrong type.
        """
        if not isinstance(value, Described) or value.descriptor != cls.CODE:
            raise MalformedError(f"{cls.__name__} expected")
        return cls.of_fields(value.value)

    @classmethod
    def of_fields(cls, fields: Value) -> Self:
        """Read the composite from its list of fields."""
        if not isinstance(fields, list) or len(fields) > len(cls.WIRE):
            raise MalformedError(f"{cls.__name__} is not a list of at most {len(cls.WIRE)} fields")
        missing: list[Value] = [None] * (len(cls.WIRE) - len(fields))
        checked: list[Any] = []
        for wire, field, value in zip(
            cls.WIRE,
            dataclasses.fields(cls),  # type: ignore[arg-type]
            [*fields, *missing],
            strict=True,
        ):
            if value is None:
                if field.metadata.get(_MANDATORY):
                    raise MalformedError(f"{cls.__name__} lacks its {field.name}")
                checked.append(None if field.default is dataclasses.MISSING else field.default)
            elif issubclass(wire, Composite) and isinstance(value, Described):
                checked.append(wire.of(value) if value.descriptor == wire.CODE else value)
            elif _fits(wire, value):
                checked.append(value)
            else:
                raise MalformedError(f"{cls.__name__}.{field.name} is a {type(value).__name__}")
        return cls(*checked)


def _fits(wire: type, value: Value) -> bool:
    if wire is object:
        return True
    if wire is bool:
        return isinstance(value, bool)
    if wire in _LARGEST:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and 0 <= value <= _LARGEST[wire]  # type: ignore[operator]
    if wire is Symbol:  # several symbols are allowed wherever one is
        return isinstance(value, Symbol | Array | list)
    return isinstance(value, wire)


def required() -> Any:  # noqa: ANN401  # dataclasses.field() has no honest type either
    """Declare a field that must not be null."""
    return dataclasses.field(metadata={_MANDATORY: True})
