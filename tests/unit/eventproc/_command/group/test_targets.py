"""Values of ``--to``, and the checkpoints that they mean."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from eventproc._command.group.targets import (
    RelativeTarget,
    known_offset,
    last_handled,
    parse_target,
    refuse_future,
)
from eventproc.errors import ConfigurationError
from eventproc.models import Checkpoint, EventPosition, PartitionProperties

NEWEST = datetime(2026, 1, 31, 8, tzinfo=UTC)
END = PartitionProperties(
    partition_id="0",
    beginning_sequence_number=10,
    last_enqueued_sequence_number=99,
    last_enqueued_offset="9900",
    last_enqueued_time=NEWEST,
    is_empty=False,
)
NEVER_USED = PartitionProperties(
    partition_id="0",
    beginning_sequence_number=0,
    last_enqueued_sequence_number=-1,
    last_enqueued_offset="-1",
    last_enqueued_time=None,
    is_empty=True,
)
EXPIRED = replace(END, is_empty=True)
AT_50 = Checkpoint(
    partition_id="0", offset="5000", sequence_number=50, etag="e", last_modified=NEWEST
)


def test_a_time_in_the_future_is_refused():
    """The hub has no event there, so only the states would be dropped."""
    target = parse_target("--to", "2026-01-31T08:00:00Z")

    with pytest.raises(ConfigurationError, match="2026-01-31T08:00:00Z is in the future"):
        refuse_future(target, NEWEST - timedelta(seconds=1))
    for text in ("2026-01-31T08:00:00Z", "latest", "60", "-5"):
        refuse_future(parse_target("--to", text), NEWEST)


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("earliest", END, 9),
        ("latest", END, 99),
        ("60", END, 59),
        ("10", END, 9),
        ("3", END, 9),
        ("100", END, 99),
        ("-20", END, 30),
        ("+20", END, 70),
        ("+0", END, 50),
        ("-1000", END, 9),
        ("+1000", END, 99),
        ("2026-01-31T08:00:00.001Z", END, 99),
        ("2026-01-31T08:00:00Z", END, None),
        ("earliest", NEVER_USED, -1),
        ("latest", NEVER_USED, -1),
        ("0", NEVER_USED, -1),
        ("2026-01-31", NEVER_USED, -1),
        ("earliest", EXPIRED, 99),
        ("latest", EXPIRED, 99),
        ("-20", EXPIRED, 99),
    ],
)
def test_a_target_is_the_first_event_to_deliver(text, end, expected):
    """The checkpoint names the event before it, within the events that the hub still has."""
    assert last_handled(parse_target("--to", text), end, AT_50) == expected


@pytest.mark.parametrize(
    ("text", "end", "checkpoint", "message"),
    [
        ("101", END, AT_50, "no event 101 yet, its last one is 99"),
        ("1", NEVER_USED, AT_50, "no event 1 yet"),
        ("-20", END, None, "no checkpoint with a sequence number to count from"),
        ("-20", END, replace(AT_50, sequence_number=None), "no checkpoint with a sequence number"),
    ],
)
def test_a_target_that_does_not_exist_is_refused(text, end, checkpoint, message):
    """Its event does not exist yet, or there is no position to count from."""
    with pytest.raises(ConfigurationError, match=message):
        last_handled(parse_target("--to", text), end, checkpoint)


def test_an_invalid_target_is_refused():
    """The message lists all forms."""
    with pytest.raises(ConfigurationError, match=r"--to is 'soon'.*earliest.*-100"):
        parse_target("--to", "soon")
    with pytest.raises(ConfigurationError, match="--to is"):
        parse_target("--to", "-" + "9" * 5_000)
    assert parse_target("--to", " -7 ") == RelativeTarget(-7)
    assert parse_target("--to", "7") == EventPosition.from_sequence_number(7, is_inclusive=True)


@pytest.mark.parametrize(
    ("number", "end", "expected"),
    [
        (99, END, "9900"),
        (50, END, "5000"),
        (9, END, "-1"),
        (60, END, None),
        (-1, NEVER_USED, "-1"),
        (99, EXPIRED, "9900"),
    ],
)
def test_the_offset_of_an_event_is_looked_up_only_if_unknown(number, end, expected):
    """Those of the ends and of the checkpoint are known."""
    assert known_offset(number, end, AT_50) == expected
