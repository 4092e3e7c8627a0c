"""Checkpoints and their isolation: what cannot be stored is refused when it is built."""

from datetime import UTC, datetime
from typing import Any

import pytest

from eventproc.models import (
    ALONE,
    COMPLETED_RANGES_MAX,
    IN_BATCH,
    IN_PART,
    NOT_BEGUN,
    STATE_BYTES_MAX,
    Checkpoint,
    CheckpointUpdate,
    Isolation,
    SequenceRange,
    alone,
)
from eventproc.models._checkpoint import IsolationMode

MANY = tuple(SequenceRange(at, at) for at in range(10, 2 * COMPLETED_RANGES_MAX + 12, 2))


def update(**changes: Any) -> CheckpointUpdate:
    """An update of partition 0 to position 7."""
    values: dict[str, Any] = {
        "partition_id": "0",
        "offset": "700",
        "sequence_number": 7,
        "replaces": None,
        "writer": "w",
    }
    return CheckpointUpdate(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": ""}, "needs an offset"),
        ({"offset": "1\r\n2"}, "printable ASCII"),
        ({"offset": "\u00e9"}, "printable ASCII"),
        ({"offset": " 1"}, "without surrounding blanks"),
        ({"offset": "no offset"}, "is what other readers take for a missing offset"),
        ({"sequence_number": -2}, "not between -1 and 9223372036854775807"),
        ({"sequence_number": 2**63}, "not between -1 and 9223372036854775807"),
        ({"completed": (SequenceRange(9, 2**63),)}, "ends above 9223372036854775807"),
        ({"state": bytes(STATE_BYTES_MAX + 1)}, f"the limit is {STATE_BYTES_MAX}"),
        ({"completed": (SequenceRange(7, 9),)}, "does not lie above it"),
        ({"completed": (SequenceRange(12, 13), SequenceRange(9, 9))}, "sorted and disjoint"),
        ({"completed": (SequenceRange(9, 12), SequenceRange(12, 13))}, "sorted and disjoint"),
        ({"completed": MANY}, f"1001 ranges of completed events, the limit is {len(MANY) - 1}"),
    ],
)
def test_an_update_that_cannot_be_stored_is_refused(changes, message):
    """The message says what is wrong."""
    with pytest.raises(ValueError, match=message):
        update(**changes)


@pytest.mark.parametrize("state", ["text", bytearray(b"x"), 7, {}])
def test_a_state_that_is_not_bytes_is_refused(state):
    """Before a store is asked to write it."""
    with pytest.raises(TypeError, match=r"state of partition '0' is a .*: give bytes"):
        update(state=state)


def test_an_update_to_a_lower_position_is_refused():
    """Except an operator's reset."""
    stored = Checkpoint(
        partition_id="0",
        offset="800",
        sequence_number=8,
        etag="1",
        last_modified=datetime(2026, 1, 1, tzinfo=UTC),
    )

    with pytest.raises(ValueError, match="would go back from 8 to 7"):
        update(replaces=stored)
    assert update(replaces=stored, is_reset=True).sequence_number == 7
    assert update(replaces=stored, sequence_number=8).sequence_number == 8


def test_updates_up_to_the_limits_are_accepted():
    """Ranges may be adjacent to each other, and to the position."""
    touching = (SequenceRange(8, 9), SequenceRange(10, 12))

    assert update(completed=touching).completed == touching
    assert update(completed=MANY[:-1]).completed == MANY[:-1]
    assert update(state=bytes(STATE_BYTES_MAX)).state == bytes(STATE_BYTES_MAX)


def test_a_range_includes_both_its_ends():
    """So it has at least one number."""
    assert [number in SequenceRange(3, 5) for number in (2, 3, 5, 6)] == [False, True, True, False]
    with pytest.raises(ValueError, match="nothing in it"):
        SequenceRange(5, 4)


WORDS = {
    "none": NOT_BEGUN,
    "batch": IN_BATCH,
    "part": IN_PART,
    "alone": ALONE,
    "alone 2": alone(2),
    "alone 31": alone(31),
}


def test_each_isolation_has_a_word_that_reads_back():
    """The words are stored, in the order in which processes die with the events."""
    assert {str(isolation): isolation for isolation in WORDS.values()} == WORDS
    assert {word: Isolation.parse(word) for word in WORDS} == WORDS
    assert sorted(WORDS.values()) == list(WORDS.values())


@pytest.mark.parametrize(
    "word", ["", "dancing", "alone x", "alone -1", "alone ²", "alone " + "9" * 99]
)
def test_an_unknown_word_counts_as_a_delivery_in_a_batch(word):
    """So the events are delivered in small parts next, and none is given up."""
    assert Isolation.parse(word) == IN_BATCH


@pytest.mark.parametrize(("mode", "count"), [("ALONE", 0), ("PART", 1), ("NONE", -1)])
def test_only_events_that_were_alone_have_a_count(mode, count):
    """Of others it would say nothing."""
    with pytest.raises(ValueError, match="does not fit"):
        Isolation(IsolationMode[mode], count)
