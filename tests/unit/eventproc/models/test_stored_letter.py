"""Dead letters as JSON, and back."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import LetterDamagedError
from eventproc.models import ConsumerGroup, DeadLetter, ReceivedEvent, letter_from_json

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
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


def whole(**changes: Any) -> bytes:
    """Return a letter as JSON, with changes; ``None`` removes a key."""
    event = ReceivedEvent(body=b"x", sequence_number=1, offset="1", enqueued_time=NOON)
    letter = DeadLetter(
        event=event,
        group=ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub"),
        partition_id="0",
        owner_id="a",
        attempt_count=1,
        error_type="E",
        error_message="",
        traceback="",
        given_up_at=NOON,
    )
    values = {**json.loads(letter.to_json()), **changes}
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
