"""Events have the Python values that Azure's client gives them."""

from decimal import Decimal
from uuid import UUID

import pytest
from azure.eventhub import EventData
from hypothesis import given
from hypothesis import strategies as st

from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.values import (
    Array,
    Byte,
    Char,
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
from eventproc.sources._amqp.values import decode
from tests.unit.eventproc.sources.eventhubs.messages import section

INTEGERS = (
    (UByte, 0, 2**8),
    (UShort, 0, 2**16),
    (UInt, 0, 2**32),
    (ULong, 0, 2**64),
    (Byte, -(2**7), 2**7),
    (Short, -(2**15), 2**15),
    (Int, -(2**31), 2**31),
    (Long, -(2**63), 2**63),
    (Timestamp, -(2**63), 2**63),
)


integers = st.one_of(
    *(st.integers(least, beyond - 1).map(kind) for kind, least, beyond in INTEGERS)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
plain = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(Float),
    texts,
    st.from_regex(r"[a-z-]{1,9}", fullmatch=True).map(Symbol),
    st.binary(max_size=300),
    st.uuids(),
    # Not an empty one: after it Azure's decoder continues at a wrong byte.
    st.lists(st.integers(-9, 9).map(Int), min_size=1, max_size=300).map(
        lambda items: Array(0x71, list(items))
    ),
)
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(texts, integers), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(values)
def test_values_are_decoded_as_by_azures_client(value):
    """So an event is the same on both receive paths."""
    by_azure = EventData.from_bytes(section(0x77, [value])).raw_amqp_message.body

    assert decode(encode([value]), 0)[0] == by_azure


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (encode(Char("ä")), "ä"),
        (encode(Described(ULong(7), "inner")), b"inner"),
        (encode(UUID(int=5)), UUID(int=5)),
        (b"\x94\x30\x3c" + bytes(12) + b"\x04\xd2", Decimal("12.34")),
        (b"\x94\xb0\x40" + bytes(13) + b"\x05", Decimal(-5)),
        (b"\x94\x78" + bytes(15), Decimal("Infinity")),
        (b"\x94\xf8" + bytes(15), Decimal("-Infinity")),
        (b"\x94\x60" + bytes(15), Decimal(0)),
        (b"\x74\x01\x02\x03\x04", b"\x01\x02\x03\x04"),
        (b"\xe0\x02\x00\x50", []),
        (b"\xe0\x02\x03\x41", [True, True, True]),
    ],
)
def test_values_of_rare_types_are_decoded(encoded, value):
    """To the Python type for them, if there is one."""
    assert decode(encoded, 0) == (value, len(encoded))


def test_a_decimal_nan_is_decoded():
    """It does not equal itself."""
    value, _ = decode(b"\x94\x7c" + bytes(15), 0)

    assert isinstance(value, Decimal)
    assert value.is_nan()
