"""Gaps in sequence numbers: lost events if numbers are dense, and nothing otherwise."""

import logging

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, EventProcessorConfig
from eventproc.sources.memory import MemoryEventSource
from eventproc.sources.memory._source import MemoryReceiver
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds


class CompactedReceiver(MemoryReceiver):
    """Leaves out every second event; may report where the partition began when it was opened."""

    def __init__(self, hub, link, first):
        super().__init__(hub, link)
        self.first = first

    async def receive(self, *, events_max, wait_max):
        events = await super().receive(events_max=events_max, wait_max=wait_max)
        return [event for event in events if event.sequence_number % 2 == 0]

    @property
    def first_sequence_number(self):
        return self.first


class CompactedSource(MemoryEventSource):
    """A hub whose numbers have gaps without a meaning, like a compacted Kafka topic."""

    def __init__(self, hub, *, reports_first):
        super().__init__(hub)
        self._reports_first = reports_first

    async def open_receiver(self, consumer_group, partition_id, position):
        first = (await self.partition_properties(partition_id)).beginning_sequence_number
        link = self.hub._attach(consumer_group, partition_id, position)
        return CompactedReceiver(self.hub, link, first if self._reports_first else None)


@pytest.mark.parametrize(
    "reports_first", [False, True], ids=["of a compacted hub", "as the link says"]
)
@pytest.mark.parametrize("is_trimmed", [False, True])
def test_if_numbers_have_gaps_only_events_deleted_by_retention_are_missing(
    caplog, is_trimmed, reports_first
):
    """Those between the position and the oldest event that still exists."""

    async def scenario():
        setup = Setup()
        for _ in range(2):
            processor = EventProcessor(
                source=CompactedSource(setup.hub, reports_first=reports_first),
                store=MemoryCheckpointStore(setup.account),
                handler=lambda: Noting(setup),
                owner_id="a",
                config=EventProcessorConfig(uses_store_thread=False),
            )
            async with processor:
                setup.publish(4)
                await seconds(30)
            setup.publish(6)
            if is_trimmed:
                setup.hub.trim("0", before=8)
        return setup.numbers()

    caplog.set_level(logging.DEBUG, "eventproc")
    numbers = run_virtual(scenario())
    missing = [
        (record.after_sequence_number, record.missing_count)
        for record in caplog.records
        if vars(record).get("event") == "events_missing" and record.levelname == "WARNING"
    ]

    assert numbers == [0, 2, *([] if is_trimmed else [4, 6]), 8, 10, 12]
    assert missing == ([(2, 5)] if is_trimmed else [])
