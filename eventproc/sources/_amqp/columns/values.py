"""Values of one field in many messages, as Arrow arrays of texts, numbers, JSON and maps."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventproc._base.amqp import MalformedError
from eventproc.columns import to_json
from eventproc.sources._amqp.columns.buffer import Buffer
from eventproc.sources._amqp.columns.pattern import Field
from eventproc.sources._amqp.fields import plain
from eventproc.sources._amqp.values import decode

TEXTS: Final = frozenset({0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3})
"""Constructors of values that become text if they are valid UTF-8."""

INTEGERS: Final = {
    0x50: "u1",
    0x51: "i1",
    0x52: "u1",
    0x53: "u1",
    0x54: "i1",
    0x55: "i1",
    0x60: ">u2",
    0x61: ">i2",
    0x70: ">u4",
    0x71: ">i4",
    0x80: ">u8",
    0x81: ">i8",
    0x83: ">i8",
}
"""The dtype of each constructor of an integer. A timestamp is an integer, in milliseconds."""

_CONSTANTS: Final = {0x40: "null", 0x41: "true", 0x42: "false", 0x43: "0", 0x44: "0"}
_BOOLEAN: Final = 0x56
_SPACE, _QUOTE, _BACKSLASH = b' "\\'


class IrregularError(Exception):
    """Array operations cannot decode the values of a field. Never leaves the source."""


def texts(buffer: Buffer, field: Field) -> pa.Array:
    """Return the values as texts.

    Raises:
        IrregularError: one is not text, or not valid UTF-8.
    """
    if field.constructor not in TEXTS:
        raise IrregularError
    try:
        return binaries(buffer, field).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise IrregularError from error


def integers(buffer: Buffer, field: Field) -> npt.NDArray[Any]:
    """Return the values of an integer field, in the dtype of its constructor."""
    return buffer.numbers(INTEGERS[field.constructor], field.at)


def json_texts(buffer: Buffer, field: Field) -> pa.Array:
    """Return the values as JSON, as ``to_json`` writes it.

    Raises:
        IrregularError: one cannot be decoded.
    """
    count = len(field.at)
    if field.constructor in _CONSTANTS:
        return repeated(_CONSTANTS[field.constructor], count)
    if field.constructor == _BOOLEAN:
        return pa.array(["false", "true"]).take(
            pa.array((buffer.numbers("u1", field.at) != 0).view(np.uint8))
        )
    if field.constructor in INTEGERS:
        return pa.array(integers(buffer, field)).cast(pa.string())
    if field.constructor in TEXTS:
        try:
            return _quoted(texts(buffer, field))
        except IrregularError:
            pass
    return _one_by_one(buffer, field)


def repeated(text: str, count: int) -> pa.Array:
    """Return an array of the same text."""
    return pa.array([text]).take(pa.array(np.zeros(count, np.int8)))


def binaries(buffer: Buffer, field: Field) -> pa.Array:
    """Return the bytes of the values."""
    sizes = field.sizes
    assert not isinstance(sizes, int), "texts and bytes have a size each"
    return buffer.values(field.at, sizes)


def _quoted(values: pa.Array) -> pa.Array:
    """Return texts as JSON strings; one by one only if a character needs an escape."""
    content = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if ((content < _SPACE) | (content == _QUOTE) | (content == _BACKSLASH)).any():
        quote: Callable[[str], str] = json.encoder.encode_basestring
        return pa.array(list(map(quote, values.to_pylist())), pa.string())
    mark, nothing = repeated('"', len(values)), repeated("", len(values))
    return pc.binary_join_element_wise(mark, values, mark, nothing)


def _one_by_one(buffer: Buffer, field: Field) -> pa.Array:
    """Decode each value alone, in the same way as for single events.

    Raises:
        IrregularError: one cannot be decoded.
    """
    sizes = field.sizes
    if isinstance(sizes, int):
        before, ends = 1, field.at + sizes
    else:
        before = 2 if field.constructor >> 4 in {0xA, 0xC, 0xE} else 5
        ends = field.at + sizes
    # A slice, because the buffer holds the messages of other publishers, too.
    encoded = map(buffer.raw.__getitem__, map(slice, (field.at - before).tolist(), ends.tolist()))
    try:
        decoded = [decode(each, 0)[0] for each in encoded]
    except MalformedError as error:
        raise IrregularError from error
    return pa.array([to_json(plain(value)) for value in decoded], pa.string())


def map_column(buffer: Buffer, fields: Mapping[str, Field], row_count: int) -> pa.Array:
    """Return a map for each row, all with these names, and values as JSON."""
    names = list(fields)
    width = len(names)
    starts = pa.array(np.arange(row_count + 1, dtype=np.int32) * width)
    if not width:
        return pa.MapArray.from_arrays(starts, pa.array([], pa.string()), pa.array([], pa.string()))
    by_name = pa.concat_arrays([json_texts(buffer, field) for field in fields.values()])
    # Arrow wants the entries of a row side by side.
    by_row = np.arange(row_count * width).reshape(width, row_count).T.ravel()
    keys = pa.array(names).take(pa.array(np.tile(np.arange(width), row_count)))
    return pa.MapArray.from_arrays(starts, keys, by_name.take(pa.array(by_row)))
