"""The body of a checkpoint blob says which position it belongs to, and whether it is intact."""

import json
import struct
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores.blob._body import (
    BODY_BYTES_MAX,
    CheckpointBody,
    frame_body,
    frame_record,
    unframe_body,
    unframe_record,
)
from eventproc.errors import StoreCorruptError
from eventproc.models import (
    COMPLETED_RANGES_MAX,
    IN_BATCH,
    IN_PART,
    NOT_BEGUN,
    STATE_BYTES_MAX,
    SequenceRange,
    alone,
)

NUMBERS = st.integers(-1, 2**63 - 1)
RANGES = st.lists(NUMBERS, max_size=20, unique=True).map(
    lambda ends: tuple(
        SequenceRange(*pair) for pair in zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False)
    )
)
ISOLATIONS = st.sampled_from([NOT_BEGUN, IN_BATCH, IN_PART]) | st.builds(
    alone, st.integers(1, 2**31)
)
BODIES = st.builds(
    CheckpointBody,
    state=st.binary(min_size=1),
    state_sequence_number=NUMBERS,
    sequence_number=NUMBERS,
    completed=RANGES,
    isolation=ISOLATIONS,
)


@given(BODIES)
def test_any_body_is_restored(body):
    """Byte for byte, with the positions of its parts."""
    assert unframe_body(frame_body(body), "blob") == body


@given(NUMBERS, RANGES.filter(bool), ISOLATIONS)
def test_a_body_may_have_completed_ranges_and_an_isolation_without_state(
    number, completed, isolation
):
    """Handlers without state may use key lanes and isolations, too."""
    body = CheckpointBody(sequence_number=number, completed=completed, isolation=isolation)

    assert unframe_body(frame_body(body), "blob") == body


def test_the_head_of_a_body_names_only_what_there_is():
    """It is stored with every state; the keys are those that readers of all versions know."""
    counted = CheckpointBody(sequence_number=7, isolation=IN_BATCH)
    ranged = CheckpointBody(sequence_number=7, completed=(SequenceRange(9, 10),))

    assert frame_body(counted).endswith(b'{"sequence_number":7,"isolation":"batch"}')
    assert frame_body(ranged).endswith(b'{"sequence_number":7,"completed":[[9,10]]}')


def test_a_body_without_contents_is_empty():
    """So the blob is the same as from an Azure SDK."""
    assert frame_body(CheckpointBody(sequence_number=7)) == b""
    assert frame_body(CheckpointBody(state=b"", sequence_number=7)) == b""
    assert unframe_body(b"", "blob") is None


def test_the_largest_body_is_within_the_limit():
    """A reader that requests this much gets any body completely."""
    top = 2**63 - 1
    largest = CheckpointBody(
        state=bytes(STATE_BYTES_MAX),
        state_sequence_number=top,
        sequence_number=top,
        completed=(SequenceRange(top, top),) * COMPLETED_RANGES_MAX,
        isolation=alone(10**18 - 1),
    )

    assert len(frame_body(largest)) <= BODY_BYTES_MAX


def test_unknown_fields_of_a_later_version_are_ignored():
    """As long as it keeps the frame."""
    head = json.dumps({"sequence_number": 7, "isolation": "part", "colour": "blue"}).encode()
    digest = blake2b(head, digest_size=16).digest()
    body = struct.pack(">8sHI16s", b"evpstate", 1, len(head), digest) + head

    assert unframe_body(body, "blob") == CheckpointBody(sequence_number=7, isolation=IN_PART)


@given(st.binary(max_size=200).filter(lambda body: not body.startswith(b"evpstate")))
def test_a_body_of_another_program_is_ignored(body):
    """Only bodies in this library's frame are read."""
    assert unframe_body(body, "blob") is None


@given(st.data(), BODIES)
def test_a_damaged_body_is_never_returned(data, body):
    """A changed byte or a missing end: an error, or not recognised as this library's."""
    framed = frame_body(body)
    at = data.draw(st.integers(0, len(framed) - 1))
    damaged = data.draw(
        st.sampled_from(
            [framed[:at], framed[:at] + bytes([framed[at] ^ 1]) + framed[at + 1 :], framed + b"x"]
        )
    )
    try:
        found = unframe_body(damaged, "blob")
    except StoreCorruptError:
        found = None

    assert found is None


def test_a_body_of_an_unknown_version_raises():
    """A process must not go on without the state that another version wrote."""
    body = bytearray(frame_body(CheckpointBody(state=b"state", state_sequence_number=7)))
    body[9] = 3
    with pytest.raises(StoreCorruptError, match="another version of eventproc"):
        unframe_body(bytes(body), "blob")


RECORD_BODY = b"evprecrd\x00\x01" + bytes.fromhex("c681ff421fbd7af6dc373a7ced20fbeb") + b"content"


def test_the_bytes_of_a_group_record_stay():
    """Magic, version, digest, content: frozen, as every stored format."""
    assert frame_record(b"content") == RECORD_BODY
    assert unframe_record(RECORD_BODY, "blob") == b"content"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "is damaged"),
        (b"evprecrd", "is damaged"),
        (RECORD_BODY[:-1], "is damaged"),
        (RECORD_BODY + b"!", "is damaged"),
        (b"x" * 40, "is damaged"),
        (
            RECORD_BODY[:9] + b"\x02" + RECORD_BODY[10:],
            "has version 2, written by a later eventproc",
        ),
    ],
)
def test_a_group_record_that_cannot_be_read_is_refused(body, why):
    """A reader gets an error with the blob's name, never a part of the content."""
    with pytest.raises(StoreCorruptError, match=rf"the record some/blob {why}"):
        unframe_record(body, "some/blob")
