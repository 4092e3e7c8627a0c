"""AMQP's types: there and back, and nothing worse than a refusal for what is no AMQP."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.emulator.amqp.decoding import MalformedError, decode, skip
from eventproc.emulator.amqp.encoding import encode
from eventproc.emulator.amqp.values import Array, Described, Float, Symbol, UInt, ULong
from tests.unit.eventproc.emulator.strategies import values


def kinds(value):
    """The types all the way down: equality alone takes an int for a uint."""
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
def test_every_value_survives_there_and_back(value):
    """Decoding what was encoded gives the value again, type for type, and ends where it ends."""
    encoded = encode(value)

    decoded, at = decode(encoded)

    assert decoded == value
    assert kinds(decoded) == kinds(value)
    assert at == len(encoded)


@given(values, st.binary(max_size=5))
def test_skipping_goes_as_far_as_reading(value, behind):
    """The position behind a value does not depend on what the value says."""
    encoded = encode(value) + behind

    assert skip(encoded, 0) == decode(encoded)[1]


@given(st.binary(max_size=60))
def test_no_bytes_do_worse_than_to_be_malformed(raw):
    """Whatever the bytes: a value, or ``MalformedError``; and skipping refuses no value."""
    try:
        _, at = decode(raw)
    except MalformedError:
        return

    assert at <= len(raw)
    assert skip(raw, 0) == at


@given(values, st.data())
def test_a_value_cut_short_is_malformed(value, data):
    """No prefix of a value is a value."""
    encoded = encode(value)
    length = data.draw(st.integers(0, len(encoded) - 1))

    with pytest.raises(MalformedError):
        decode(encoded[:length])


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00" * 5000,  # described by something described by something ...
        b"\xc0\x02\x01" * 2000,  # lists in lists
        b"\xd0\x00\x00\x00\x04\xff\xff\xff\xff",  # four billion elements in no bytes
        b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",  # four billion nulls in one
        b"\xb0\xff\xff\xff\xff",  # four gigabytes of binary
        b"\xc1\x02\x01\x40",  # a key without a value
        b"\xc1\x04\x02\x45\x40\x40",  # a list as a key, and a byte too many
        b"\x73\xff\xff\xff\xff",  # no character
        b"\xa3\x01\xff",  # a symbol that is not ASCII
        b"\xa1\x01\xff",  # a string that is not UTF-8
        b"\x30",  # a constructor of nothing
    ],
)
def test_attacks_are_refused_at_once(raw):
    """Depth, promised lengths and promised counts cost the sender, not us."""
    with pytest.raises(MalformedError):
        decode(raw)


def test_numbers_are_written_in_their_shortest_form():
    """Small numbers take a byte, zero takes none: as the examples of the standard have it."""
    encoded = [encode(UInt(0)), encode(UInt(7)), encode(UInt(256)), encode(ULong(16))]

    assert encoded == [b"\x43", b"\x52\x07", b"\x70\x00\x00\x01\x00", b"\x53\x10"]


def test_what_is_no_number_comes_back_as_none():
    """NaN is the one value that equals nothing, not even itself."""
    numbers = [decode(encode(nan))[0] for nan in (math.nan, Float(math.nan))]

    assert [number != number for number in numbers] == [True, True]  # noqa: PLR0124


def test_an_array_of_described_values_shares_its_descriptor():
    """The descriptor stands once before all elements."""
    array = Array(0xA3, [Described(Symbol("x"), Symbol("a")), Described(Symbol("x"), Symbol("b"))])

    decoded, _ = decode(encode(array))

    assert decoded == array
    assert encode(array).count(b"x") == 1


def test_what_amqp_has_no_word_for_is_the_programmers_mistake():
    """Only our own code encodes; a type that AMQP lacks is a bug there."""
    with pytest.raises(TypeError, match="complex"):
        encode(1j)  # type: ignore[arg-type]
