"""The table of ``checkpoints list``."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from eventproc._command.group.records import Record, records_table
from eventproc.models import ALONE, IN_BATCH, IN_PART, NOT_BEGUN, Checkpoint, ConsumerGroup, alone

GROUP = ConsumerGroup(fully_qualified_namespace="n", eventhub_name="orders", name="$Default")


@pytest.mark.parametrize(
    ("isolation", "text"),
    [
        (NOT_BEGUN, "00:00:00 a"),
        (IN_BATCH, "00:00:00 in a batch a"),
        (IN_PART, "00:00:00 in a part a"),
        (ALONE, "00:00:00 alone a"),
        (alone(2), "00:00:00 alone, 2 times a"),
        (alone(3), "00:00:00 alone, 3 times a"),
    ],
)
def test_an_isolation_is_shown_in_words(isolation, text):
    """How the events were delivered; how often, only if alone."""
    found = Checkpoint(
        partition_id="0",
        offset="1",
        sequence_number=1,
        etag="1",
        last_modified=datetime(2026, 1, 1, tzinfo=UTC),
        isolation=isolation,
        writer="a",
        state=b"",
    )
    console = Console(width=140)
    with console.capture() as capture:
        console.print(records_table(GROUP, {"0": Record(checkpoint=found)}))

    assert " ".join(capture.get().splitlines()[-1].split()).endswith(text)
