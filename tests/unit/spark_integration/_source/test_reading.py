"""Gaps in a range: which of them are losses, and when the hub is asked."""

from datetime import UTC, datetime
from typing import Any

import pytest

from eventproc.models import PartitionProperties, ReceivedEvent
from spark_integration import EventsLostError
from spark_integration._options import parse_source_options
from spark_integration._source.planning import EventRange
from spark_integration._source.reading import RangeReader

CHUNKS = [(0, 2), (4,), (5, 6)]
"""Numbers 1 and 3 are missing."""


class Source:
    """A partition whose first event is, at each time that it is asked, one of these."""

    first_sequence_number = None

    def __init__(self, *firsts: int) -> None:
        self.firsts = list(firsts)
        self._chunks = iter(CHUNKS)

    async def open_receiver(self, *_: object) -> "Source":
        return self

    def read_columns(self) -> None:
        """Do nothing."""

    async def receive_batch(self, **_: object) -> list[ReceivedEvent]:
        return [
            ReceivedEvent(
                body=b"",
                sequence_number=number,
                offset=str(number),
                enqueued_time=datetime(2026, 1, 31, tzinfo=UTC),
            )
            for number in next(self._chunks)
        ]

    async def properties_of(self, _: object) -> list[PartitionProperties]:
        return [
            PartitionProperties(
                partition_id="0",
                beginning_sequence_number=self.firsts.pop(0),
                last_enqueued_sequence_number=6,
                last_enqueued_offset="6",
                last_enqueued_time=datetime(2026, 1, 31, tzinfo=UTC),
                is_empty=False,
            )
        ]

    async def close(self) -> None:
        """Do nothing."""


async def numbers(source: Any) -> list[int]:
    options = parse_source_options(
        {
            "connectionString": "Endpoint=sb://x.example/;SharedAccessKeyName=a;"
            "SharedAccessKey=b=;EntityPath=orders"
        },
        is_stream=True,
    )
    reader = RangeReader(source, options, EventRange(partition_id="0", start=0, end=7))
    found: list[int] = []
    while events := await reader.read():
        found += [event.sequence_number for event in events]
    await reader.close()
    return found


async def test_the_hub_is_asked_at_the_first_gap_and_at_the_end():
    """What is missing after the partition's first event was superseded, and is no loss."""
    source = Source(0, 0)

    assert await numbers(source) == [0, 2, 4, 5, 6]
    assert source.firsts == []


async def test_a_gap_before_the_last_chunk_is_a_loss_if_the_partition_begins_after_it_by_then():
    """Retention deleted it after the first gap was asked about."""
    with pytest.raises(EventsLostError, match="events 3 to 3 of"):
        await numbers(Source(0, 4))
