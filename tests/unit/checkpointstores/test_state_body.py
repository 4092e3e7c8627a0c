"""A state in a blob's body says where it belongs, and whether it is whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores._state_body import BODY_BYTES_MAX, frame_state, unframe_state
from eventproc.errors import StoreCorruptError
from eventproc.models import STATE_BYTES_MAX


@given(st.binary(min_size=1), st.integers(0, 2**63 - 1))
def test_any_state_comes_back_with_its_position(state, sequence_number):
    """Byte for byte."""
    body = frame_state(state, sequence_number)

    assert unframe_state(body, "blob") == (state, sequence_number)


def test_no_state_is_an_empty_body():
    """So that the blob is as the Azure SDKs write it."""
    assert frame_state(b"", 7) == b""
    assert unframe_state(b"", "blob") is None


def test_the_limit_leaves_room_for_the_frame():
    """A reader that asks for this much gets any state whole."""
    assert len(frame_state(bytes(STATE_BYTES_MAX), 0)) == BODY_BYTES_MAX


@given(st.binary(max_size=200))
def test_a_strangers_body_is_no_state(body):
    """Nothing but our own frame counts."""
    assert unframe_state(body, "blob") is None


@given(st.data(), st.binary(min_size=1, max_size=50))
def test_a_damaged_state_is_never_returned(data, state):
    """One byte changed, or the end torn off: an error, or not recognised at all."""
    body = frame_state(state, 7)
    at = data.draw(st.integers(0, len(body) - 1))
    damaged = data.draw(
        st.sampled_from(
            [body[:at], body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :], body + b"x"]
        )
    )
    try:
        found = unframe_state(damaged, "blob")
    except StoreCorruptError:
        found = None

    assert found is None


def test_a_state_of_a_later_version_is_left_for_it():
    """An old process must not go on without the state that a new one wrote."""
    body = bytearray(frame_state(b"state", 7))
    body[9] = 2
    with pytest.raises(StoreCorruptError, match="later eventproc"):
        unframe_state(bytes(body), "blob")
