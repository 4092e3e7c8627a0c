"""The column ``value``: decoded bodies as Arrow values of the type that the handler has.

Rule: the Arrow type follows from the Python type alone, so it is the same for every batch.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import msgspec
import pyarrow as pa

from eventproc.errors import ConfigurationError

VALUE: Final = "value"
"""The column with the values that a decoder made of the bodies."""

_KEPT: Final = (bytes, datetime, date)
"""Types that msgspec must not convert to text, because Arrow has types for them."""

_SIMPLE: Final[Mapping[type, pa.DataType]] = {
    msgspec.inspect.BoolType: pa.bool_(),
    msgspec.inspect.IntType: pa.int64(),
    msgspec.inspect.FloatType: pa.float64(),
    msgspec.inspect.StrType: pa.string(),
    msgspec.inspect.BytesType: pa.binary(),
    msgspec.inspect.DateTimeType: pa.timestamp("us", tz="UTC"),
    msgspec.inspect.DateType: pa.date32(),
    msgspec.inspect.UUIDType: pa.string(),
    msgspec.inspect.DecimalType: pa.string(),
}

_LISTS: Final = (
    msgspec.inspect.ListType,
    msgspec.inspect.SetType,
    msgspec.inspect.FrozenSetType,
    msgspec.inspect.VarTupleType,
)

_RECORDS: Final = (
    msgspec.inspect.StructType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.TypedDictType,
)


def value_type(shape: Any) -> pa.DataType:  # noqa: ANN401 - a type, or a union of some
    """Return the Arrow type for values of a Python type.

    Raises:
        ConfigurationError: Arrow has no such type; the message names the part that has none.
    """
    return _arrow(msgspec.inspect.type_info(shape), ())


def value_array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Return decoded values as an Arrow array of this type.

    Raises:
        ValueError: Arrow cannot have a value, such as an integer of more than 64 bits.
    """
    if not values:
        return pa.array([], kind)
    plain = [msgspec.to_builtins(v, builtin_types=_KEPT) for v in values]
    try:
        return pa.array(plain, kind)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise ValueError(f"the column {VALUE!r} cannot have it: {error}") from error


def with_column(batch: pa.RecordBatch, place: int, column: pa.Array) -> pa.RecordBatch:
    """Return a batch, which may have no columns, with ``value`` inserted at *place*."""
    arrays, fields = list(batch.columns), list(batch.schema)
    arrays.insert(place, column)
    fields.insert(place, pa.field(VALUE, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _arrow(info: Any, seen: tuple[type, ...]) -> pa.DataType:  # noqa: ANN401 - one of many classes
    if isinstance(info, msgspec.inspect.Metadata):
        return _arrow(info.type, seen)
    if isinstance(info, msgspec.inspect.UnionType):
        others = [t for t in info.types if not isinstance(t, msgspec.inspect.NoneType)]
        info = others[0] if len(others) == 1 else info
    found = _SIMPLE.get(type(info)) or _nested(info, seen) or _of_choices(info)
    if found is None:
        kind = type(info).__name__.removesuffix("Type")
        name = getattr(getattr(info, "cls", None), "__name__", kind)
        raise ConfigurationError(
            f"the column {VALUE!r} cannot have {name}: use numbers, text, bytes, times, lists, "
            "dictionaries and structs with one type for each field, or decode in process_event"
        )
    return found


def _nested(info: Any, seen: tuple[type, ...]) -> pa.DataType | None:  # noqa: ANN401 - see above
    if isinstance(info, _LISTS):
        return pa.list_(_arrow(info.item_type, seen))
    if isinstance(info, msgspec.inspect.DictType):
        return pa.map_(_arrow(info.key_type, seen), _arrow(info.value_type, seen))
    is_record = isinstance(info, _RECORDS) and not getattr(info, "array_like", False)
    if not is_record or info.cls in seen:
        return None
    if isinstance(info, msgspec.inspect.StructType) and info.cls.__struct_config__.omit_defaults:
        raise ConfigurationError(
            f"the column {VALUE!r} cannot have {info.cls.__name__} with omit_defaults=True: fields "
            "that have their default would be null. Leave it out, or decode in process_event"
        )
    inside = (*seen, info.cls)
    return pa.struct(
        [pa.field(each.encode_name, _arrow(each.type, inside)) for each in info.fields]
    )


def _of_choices(info: Any) -> pa.DataType | None:  # noqa: ANN401 - see above
    """Return the type of the values of an enum or a literal."""
    if isinstance(info, msgspec.inspect.EnumType):
        kinds = {type(member.value) for member in info.cls}
    elif isinstance(info, msgspec.inspect.LiteralType):
        kinds = {type(value) for value in info.values}
    else:
        return None
    if kinds == {str}:
        return pa.string()
    return pa.int64() if kinds == {int} else None
