"""The table of ``checkpoints list``."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from eventproc.cli.group.records import Record, records_table
from eventproc.models import Checkpoint, ConsumerGroup

GROUP = ConsumerGroup(fully_qualified_namespace="n", eventhub_name="orders", name="$Default")


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        (0, "00:00:00 a"),
        (1, "00:00:00 in a batch a"),
        (2, "00:00:00 in a part a"),
        (3, "00:00:00 alone a"),
        (4, "00:00:00 alone, 2 times a"),
        (5, "00:00:00 alone, 3 times a"),
    ],
)
def test_a_delivery_count_is_shown_in_words(mark, text):
    """The number says how events were delivered, not how often."""
    found = Checkpoint(
        partition_id="0",
        offset="1",
        sequence_number=1,
        etag="1",
        last_modified=datetime(2026, 1, 1, tzinfo=UTC),
        delivery_count=mark,
        writer="a",
        state=b"",
    )
    console = Console(width=140)
    with console.capture() as capture:
        console.print(records_table(GROUP, {"0": Record(checkpoint=found)}))

    assert " ".join(capture.get().splitlines()[-1].split()).endswith(text)
