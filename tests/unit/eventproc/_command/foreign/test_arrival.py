"""What a position of another program lacks, as the hub tells it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc._command.foreign.arrival import _completed, _number_at
from eventproc._command.foreign.found import FoundPosition
from eventproc.errors import ConfigurationError
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


async def test_a_position_that_is_older_than_the_hub_is_refused():
    """The hub was deleted and created again: an event of that number is another one now."""
    hub = MemoryHub(1)
    hub.recreate()
    hub.publish(b"", partition_id="0")
    created = hub.created_at
    assert created is not None
    younger = FoundPosition(
        partition_id="0",
        offset=None,
        sequence_number=0,
        where="blob x",
        known_since=created + timedelta(seconds=1),
    )
    older = replace(younger, known_since=created - timedelta(seconds=1))
    async with MemoryEventSource(hub) as source:
        await source.partition_ids()
        end = await source.partition_properties("0")

        assert (await _completed(source, "$Default", younger, end)).offset is not None
        with pytest.raises(ConfigurationError, match=r"blob x is of .*, before this event hub"):
            await _completed(source, "$Default", older, end)
