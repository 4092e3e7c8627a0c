"""The AMQP codec: each type is decoded as it was encoded, and invalid bytes are malformed."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.amqp import MalformedError, skip
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.values import Array, Described, Float, Symbol, UInt, ULong, decode
from tests.unit.eventproc.emulator.strategies import values


def kinds(value):
    """The types of a value and of all its parts: equality takes an int for a uint."""
    match value:
        case Described(descriptor, inner):
            return (Described, kinds(descriptor), kinds(inner))
        case list():
            return (type(value), [kinds(element) for element in value])
        case dict():
            return (dict, [(kinds(key), kinds(inner)) for key, inner in value.items()])
        case _:
            return type(value)


@given(values)
def test_a_decoded_value_equals_the_encoded_one(value):
    """Including the types of all parts; decoding ends at its end."""
    encoded = encode(value)

    decoded, at = decode(encoded)

    assert decoded == value
    assert kinds(decoded) == kinds(value)
    assert at == len(encoded)


@given(values, st.binary(max_size=5))
def test_skip_ends_where_decode_does(value, rest):
    """Whatever the value is."""
    encoded = encode(value) + rest

    assert skip(encoded, 0) == decode(encoded)[1]


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_malformed(raw):
    """``skip`` accepts every value that ``decode`` accepts."""
    with suppress(MalformedError):
        assert skip(raw, 0) <= len(raw)
    try:
        _, at = decode(raw)
    except MalformedError:
        return

    assert at <= len(raw)
    assert skip(raw, 0) == at


@given(values, st.data())
def test_a_value_that_is_cut_off_is_malformed(value, data):
    """No prefix of a value is a value."""
    encoded = encode(value)
    length = data.draw(st.integers(0, len(encoded) - 1))

    with pytest.raises(MalformedError):
        decode(encoded[:length])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00" * 5000,  # described by something described by something ...
        b"\xc0\x02\x01" * 2000,  # lists in lists
        b"\xd0\x00\x00\x00\x04\xff\xff\xff\xff",  # four billion elements in no bytes
        b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",  # four billion nulls in one
        b"\xf0\x00\x00\x00\x06\x00\xff\xff\xff\x50\x01",  # of small numbers in one byte
        b"\xc0\xff\x01\x40",  # a list that ends behind the last byte
        b"\xa1\x05abc",  # a text that does
        b"\xb0\xff\xff\xff\xff",  # four gigabytes of binary
        b"\xc1\x02\x01\x40",  # a key without a value
        b"\xc1\x04\x02\x45\x40\x40",  # a list as a key, and a byte too many
        b"\x73\xff\xff\xff\xff",  # not a character
        b"\xa3\x01\xff",  # a symbol that is not ASCII
        b"\xa1\x01\xff",  # a string that is not UTF-8
        b"\x30",  # an unknown constructor
    ],
)
def test_nesting_and_large_announced_sizes_are_malformed_at_once(raw):
    """They cost the receiver no memory or time."""
    with pytest.raises(MalformedError):
        decode(raw)


def test_numbers_are_encoded_in_their_shortest_form():
    """As in the examples of the standard: small numbers take a byte, zero takes none."""
    encoded = [encode(UInt(0)), encode(UInt(7)), encode(UInt(256)), encode(ULong(16))]

    assert encoded == [b"\x43", b"\x52\x07", b"\x70\x00\x00\x01\x00", b"\x53\x10"]


def test_nan_is_decoded_as_nan():
    """It is the only value that does not equal itself."""
    numbers = [decode(encode(nan))[0] for nan in (math.nan, Float(math.nan))]

    assert [number != number for number in numbers] == [True, True]  # noqa: PLR0124


def test_an_array_of_described_values_shares_its_descriptor():
    """It is encoded once, before all elements."""
    array = Array(0xA3, [Described(Symbol("x"), Symbol("a")), Described(Symbol("x"), Symbol("b"))])

    decoded, _ = decode(encode(array))

    assert decoded == array
    assert encode(array).count(b"x") == 1


def test_encoding_a_type_that_amqp_lacks_raises_type_error():
    """It is a bug in this library, which alone encodes values."""
    with pytest.raises(TypeError, match="complex"):
        encode(1j)  # type: ignore[arg-type]
