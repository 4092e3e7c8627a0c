"""Parsing of positions, in every form."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from eventproc.errors import ConfigurationError
from eventproc.models import Checkpoint, EventPosition, OffsetFormat
from spark_integration._positions import parse_position, parse_positions, refuse_other_protocol

EIGHT = datetime(2026, 1, 31, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EventPosition.earliest()),
        (" Latest ", EventPosition.latest()),
        ("4711", EventPosition(sequence_number=4711, is_inclusive=True)),
        ("2026-01-31T08:00:00Z", EventPosition(enqueued_time=EIGHT, is_inclusive=True)),
        ("2026-01-31T08:00:00", EventPosition(enqueued_time=EIGHT, is_inclusive=True)),
        ("2026-01-31T09:00:00+01:00", EventPosition(enqueued_time=EIGHT, is_inclusive=True)),
        ('{"offset": "-1", "seqNo": -1, "enqueuedTime": null}', EventPosition.earliest()),
        ('{"offset": "@latest", "seqNo": -1, "enqueuedTime": null}', EventPosition.latest()),
        ('{"offset": "880", "isInclusive": false}', EventPosition(offset="880")),
        ('{"seqNo": 7}', EventPosition(sequence_number=7, is_inclusive=True)),
        ('{"seqNo": 7, "isInclusive": false}', EventPosition(sequence_number=7)),
        (
            '{"offset": null, "seqNo": -1, "enqueuedTime": "2026-01-31T08:00:00Z"}',
            EventPosition(enqueued_time=EIGHT, is_inclusive=True),
        ),
    ],
)
def test_positions_are_parsed_in_all_forms(text, position):
    """Words, numbers, times, and the Scala connector's JSON."""
    assert parse_position("startingPosition", text) == position


def test_a_time_means_the_same_instant_in_every_zone():
    """A time without a zone is UTC, not local time."""
    zone = timezone(timedelta(hours=5, minutes=30))
    given = EIGHT.astimezone(zone).isoformat()

    assert parse_position("startingPosition", given).enqueued_time == EIGHT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "-5",
        "{",
        "[]",
        "{}",
        '{"sequence": 4}',
        '{"seqNo": "7"}',
        '{"seqNo": true}',
    ],
)
def test_an_invalid_position_is_refused(text):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match="startingPosition"):
        parse_position("startingPosition", text)


def test_partitions_may_have_positions_of_their_own():
    """Keys are plain partition ids, or the Scala connector's JSON."""
    key = json.dumps({"ehName": "orders", "partitionId": 3})
    several = json.dumps({"0": "latest", "1": 17, key: {"seqNo": 4}})
    positions = parse_positions(
        "startingPosition", "earliest", several, otherwise=EventPosition.latest()
    )

    assert positions.of("0") == EventPosition.latest()
    assert positions.of("1") == EventPosition(sequence_number=17, is_inclusive=True)
    assert positions.of("3") == EventPosition(sequence_number=4, is_inclusive=True)
    assert positions.of("2") == EventPosition.earliest()


@pytest.mark.parametrize("text", ["earliest", "[1]", '{"{\\"ehName\\": \\"x\\"}": 3}'])
def test_positions_without_partition_ids_are_refused(text):
    """The plural option requires partition ids."""
    with pytest.raises(ConfigurationError, match="startingPositions"):
        parse_positions("startingPosition", None, text, otherwise=EventPosition.latest())


def test_partitions_without_a_checkpoint_start_at_the_oldest_event():
    """Unless another position is given."""
    latest = EventPosition.latest()
    plain = parse_positions("startingPosition", None, "checkpoints", otherwise=latest)
    message = parse_positions("startingPosition", "latest", "Checkpoints", otherwise=latest)

    assert (plain.is_by_checkpoints, plain.otherwise) == (True, EventPosition.earliest())
    assert (message.is_by_checkpoints, message.otherwise) == (True, latest)


@pytest.mark.parametrize(
    ("offset", "accepted"),
    [
        ("kafka:7", {OffsetFormat.KAFKA}),
        ("queue:7", {OffsetFormat.QUEUE}),
        ("7", {OffsetFormat.AMQP}),
        ("-1", set(OffsetFormat)),
    ],
)
def test_a_checkpoint_of_another_protocol_is_refused(offset, accepted):
    """The offsets of one protocol cannot be used over another; the one before all events can."""
    checkpoint = Checkpoint(
        partition_id="0", offset=offset, sequence_number=7, etag="1", last_modified=EIGHT
    )
    for wanted in set(OffsetFormat) - accepted:
        with pytest.raises(ConfigurationError, match=f"cannot be used for .* {wanted.value}"):
            refuse_other_protocol(checkpoint, wanted)
    for wanted in accepted:
        refuse_other_protocol(checkpoint, wanted)
