"""Which readers the source has, and when it makes another."""

from datetime import timedelta

import pytest

from eventproc.errors import SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.sources.kafka import KafkaEventSource
from eventproc.sources.kafka import _source as source_module
from tests.unit.eventproc.sources.kafka.fake_consumer import FakeConsumer

GROUP = "$Default"
EARLIEST = EventPosition.earliest()
SOON = timedelta(seconds=10)


async def test_a_partition_can_be_opened_again_after_the_reading_thread_has_ended(monkeypatch):
    """An outage ends it, and a processor goes on without a restart."""
    made: list[FakeConsumer] = []

    def make(address, group):
        made.append(FakeConsumer())
        return made[-1]

    monkeypatch.setattr(source_module, "Consumer", make)
    async with KafkaEventSource("broker:9092", topic="orders") as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        made[-1].is_broken = True
        with pytest.raises(SourceUnavailableError, match="reading from Kafka failed"):
            await receiver.receive(events_max=9, wait_max=SOON)
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        made[-1].count = 5
        events = await receiver.receive(events_max=9, wait_max=SOON)

    assert [event.sequence_number for event in events] == list(range(5))
