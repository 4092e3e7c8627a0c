"""What a position of another program lacks, as the hub tells it."""

import pytest

from eventproc._command.foreign.arrival import _number_at
from eventproc.sources.memory import MemoryEventSource, MemoryHub


@pytest.mark.parametrize(("number", "expected"), [(0, 1), (1, 1), (2, 2), (3, 3)])
async def test_an_offset_whose_event_is_gone_is_before_the_first_that_is_left(number, expected):
    """That one was not handled: the position is the number before it."""
    hub = MemoryHub(1)
    offsets = [hub.publish(b"", partition_id="0")[1].offset for _ in range(4)]
    hub.trim("0", before=2)
    async with MemoryEventSource(hub) as source:
        end = await source.partition_properties("0")

        assert await _number_at(source, "$Default", str(offsets[number]), end) == expected


async def test_an_offset_in_a_partition_whose_events_are_all_gone_is_its_end():
    """There is no event to ask for: each of them was handled, or retention has deleted it."""
    hub = MemoryHub(1)
    offset = [hub.publish(b"", partition_id="0")[1].offset for _ in range(4)][1]
    hub.trim("0", before=4)
    async with MemoryEventSource(hub) as source:
        end = await source.partition_properties("0")

        assert await _number_at(source, "$Default", str(offset), end) == 3
