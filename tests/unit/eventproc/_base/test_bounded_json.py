"""JSON of another process: any bytes are a value or a ``ValueError``."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.bounded_json import DEPTH_MAX, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "NaN" not in json.dumps(value))


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(VALUES)
def test_a_value_is_read_as_it_was_written(value):
    """Lone surrogates and large integers, too."""
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        nested(DEPTH_MAX + 2),
        nested(500),
        nested(100_000),
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b"[NaN]",
        b"-Infinity",
        b"1e999",
        b"1" * 5000,
        b"\xff",
        b"",
        b" " * 17 * 1024 * 1024,
    ],
    ids=lambda text: str(text[:12]),
)
def test_what_cannot_be_used_is_a_value_error(text):
    """Nested or long enough to end a process, or with numbers that no arithmetic expects."""
    with pytest.raises(ValueError):  # noqa: PT011 - each way has words of its own
        read_json(text)


def test_the_bounds_are_inclusive():
    """The deepest and the longest JSON that is read."""
    assert read_json(nested(DEPTH_MAX + 1))
    assert read_json(b" 1", length_max=2) == 1
    with pytest.raises(ValueError, match="length is 3, and at most 2"):
        read_json(b" 12", length_max=2)
