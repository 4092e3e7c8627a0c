"""Dead letters as JSON, and back."""

import json
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import LetterDamagedError
from eventproc.models import (
    ConsumerGroup,
    DeadLetter,
    ReceivedEvent,
    StoredLetter,
    letter_from_json,
)
from eventproc.models._stored_letter import in_order
from tests.scenarios.dead_letters import NOON, letter

NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
VALUES = st.recursive(
    PLAIN | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
PROPERTIES = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)
TEXTS = st.none() | st.text()
TIMES = st.datetimes(timezones=st.just(UTC))
EVENTS = st.builds(
    ReceivedEvent,
    body=st.binary() | st.text().map(str.encode),
    sequence_number=st.integers(0, 2**63 - 1),
    offset=st.text(min_size=1),
    enqueued_time=TIMES,
    partition_key=TEXTS,
    properties=PROPERTIES,
    system_properties=PROPERTIES,
    content_type=TEXTS,
    correlation_id=TEXTS,
    message_id=TEXTS,
)
LETTERS = st.builds(
    DeadLetter,
    event=EVENTS,
    group=st.builds(
        ConsumerGroup, fully_qualified_namespace=NAMES, eventhub_name=NAMES, name=NAMES
    ),
    partition_id=NAMES,
    owner_id=st.text(),
    attempt_count=st.integers(0),
    error_type=st.text(),
    error_message=st.text(),
    traceback=st.text(),
    given_up_at=TIMES,
)


@given(LETTERS)
def test_a_letter_is_read_as_it_was_written(letter):
    """Bodies of any bytes, and properties of every type that JSON has, and bytes."""
    assert letter_from_json(letter.to_json()) == letter


LETTER = letter(1)


def whole(**changes: Any) -> bytes:
    """Return a letter as JSON, with changes; ``None`` removes a key."""
    values = {**json.loads(LETTER.to_json()), **changes}
    return json.dumps({n: v for n, v in values.items() if v is not None}).encode()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[1]", "not a JSON object with an event"),
        (whole(event=None), "not a JSON object with an event"),
        (whole(event={"body_base64": "*"}), "not Base64"),
        (whole(event={}), "no body_base64"),
        (whole(event={"body": 1}), "body is 1, and not a text"),
        (whole(event={"body": "", "properties": [1]}), r"properties is \[1\], and not an object"),
        (whole(partition_id=None), "no partition_id"),
        (whole(sequence_number="1"), "not a whole number"),
        (whole(sequence_number=True), "not a whole number"),
        (whole(enqueued_time="noon"), "not a time"),
        (whole(given_up_at="2026-01-01T12:00:00"), "without a time zone"),
        (whole(eventhub_name="a/b"), "slash"),
    ],
)
def test_what_is_no_letter_is_damaged(raw, message):
    """The error says what is wrong, for the operator."""
    with pytest.raises(LetterDamagedError, match=message):
        letter_from_json(raw)


def test_a_letter_without_message_and_traceback_is_read():
    """A sink leaves them out if the letter would be too large."""
    letter = letter_from_json(whole(error_message=None, traceback=None))

    assert (letter.error_message, letter.traceback) == ("", "")


@pytest.mark.parametrize(
    ("offset", "time"),
    [("queue:1", NOON + timedelta(hours=1)), ("1001", NOON + timedelta(milliseconds=7))],
)
def test_an_event_is_the_same_whatever_its_source_says_of_its_time(offset, time):
    """A message of a queue has the time of its arrival, and some Capture files have seconds."""
    event = replace(LETTER.event, offset=offset)
    copies = [replace(LETTER, event=replace(event, enqueued_time=at)) for at in (NOON, time)]

    assert len(in_order(StoredLetter(place="", letter=copy) for copy in copies)) == 1


def test_of_two_copies_of_a_letter_the_newest_counts():
    """After a reset an event may fail again, for another reason."""
    copies = [
        StoredLetter(
            place="", letter=replace(LETTER, given_up_at=at, error_message=error), handle=error
        )
        for at, error in [(NOON, "old"), (NOON + timedelta(hours=1), "new")]
    ]
    for each in (copies, copies[::-1]):
        (found,) = in_order(each)

        assert found.letter is not None
        assert found.letter.error_message == "new"
        assert set(found.handle) == {"old", "new"}  # type: ignore[call-overload]


def test_letters_come_by_partition_and_number_and_damaged_ones_last():
    letters = [
        replace(LETTER, partition_id=p, event=replace(LETTER.event, sequence_number=number))
        for p, number in [("1", 1), ("0", 10), ("0", 9)]
    ]
    damaged = StoredLetter(place="damaged", letter=None, handle=1)
    found = in_order([damaged, *(StoredLetter(place="", letter=each) for each in letters)])

    assert [each.letter for each in found] == [*letters[::-1], None]
