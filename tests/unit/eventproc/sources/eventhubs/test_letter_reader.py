"""Which dead letters of a hub are waited for."""

import asyncio
from typing import Any

import pytest

from eventproc.sources.eventhubs import EventHubDeadLetterReader
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing._virtual_time import run_virtual


@pytest.mark.parametrize(
    ("kept_count", "found"), [(0, []), (1, ["0/2"]), (3, ["0/0", "0/1", "0/2"])]
)
def test_letters_that_retention_deleted_are_not_waited_for(kept_count, found):
    """An empty partition still says which event was the last one."""
    hub = MemoryHub(2)
    for _ in range(3):
        hub.publish(b"no letter", partition_id="0")
    hub.trim("0", before=3 - kept_count)

    async def scenario() -> list[str]:
        source: Any = MemoryEventSource(hub)
        async with EventHubDeadLetterReader(source) as reader, asyncio.timeout(1):
            return [stored.place async for stored in reader.letters()]

    assert run_virtual(scenario()) == found
