"""Hypothesis strategies shared by tests of the emulator."""

import string

from hypothesis import strategies as st

from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.values import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)


def integers(kind, bits, *, signed):
    """Draw AMQP integers of one size, its limits more often."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = st.sampled_from([low, high, 0, min(high, 255), min(high, 256)])
    return (edges | st.integers(low, high)).map(kind)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
symbols = st.text(string.ascii_letters + ".-:", min_size=1, max_size=30).map(Symbol)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    integers(UByte, 8, signed=False),
    integers(UShort, 16, signed=False),
    integers(UInt, 32, signed=False),
    integers(ULong, 64, signed=False),
    integers(Byte, 8, signed=True),
    integers(Short, 16, signed=True),
    integers(Int, 32, signed=True),
    integers(Long, 64, signed=True),
    integers(Timestamp, 64, signed=True),
    st.floats(allow_nan=False, width=32).map(Float),
    st.floats(allow_nan=False),
    st.characters(exclude_categories=["Cs"]).map(Char),
    st.sampled_from([4, 8, 16]).flatmap(
        lambda size: st.binary(min_size=size, max_size=size).map(Decimal)
    ),
    st.uuids(),
    st.binary(max_size=300),
    texts,
    symbols,
)


def arrays(elements):
    """Draw AMQP arrays: elements that share the type of the first."""

    def of_one_kind(values):
        code = encode(values[0])[0]
        return Array(code, [value for value in values if encode(value)[0] == code])

    return st.lists(elements, min_size=1, max_size=5).map(of_one_kind)


values = st.recursive(
    scalars | arrays(scalars),
    lambda children: (
        st.lists(children, max_size=5)
        | st.dictionaries(symbols | texts, children, max_size=5)
        | st.builds(Described, integers(ULong, 64, signed=False) | symbols, children)
    ),
    max_leaves=12,
)
