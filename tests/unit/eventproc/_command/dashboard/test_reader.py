"""What the page asks the hub for."""

from math import ceil

import pytest

from eventproc._command.dashboard.reader import ENDS_MAX, HubEnds
from eventproc.sources.memory import MemoryEventSource, MemoryHub


@pytest.mark.parametrize("count", [ENDS_MAX + 1, 2 * ENDS_MAX, 2 * ENDS_MAX + 50])
async def test_the_partitions_of_a_large_hub_are_asked_for_in_turn(count):
    """Without an end: what was asked for long ago shows no lag and no rate of now."""
    async with MemoryEventSource(MemoryHub(partition_count=count)) as source:
        ends = HubEnds(source)
        asked = []
        for reading in range(8):
            await ends.ask(reading)
            asked.append(len(set(ends.new_ids)))
        ids = await source.partition_ids()

    assert asked == [ENDS_MAX] * 8
    assert max(7 - ends.at_s[partition_id] for partition_id in ids) < ceil(count / ENDS_MAX)
