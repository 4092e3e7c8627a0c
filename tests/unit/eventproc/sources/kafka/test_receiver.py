"""The receiver of a partition: it waits for messages, and says when it took some."""

from datetime import timedelta

from eventproc.sources.kafka import _reader as reader_module
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, Fault
from tests.unit.eventproc.sources.kafka.test_reader import (
    CHUNK,
    FakeConsumer,
    feed_of,
    opened,
    reading,
    take,
)

BRIEFLY = timedelta(milliseconds=50)


async def test_the_end_of_a_partition_is_not_an_event():
    """Receiving from an empty partition returns nothing."""
    consumer = FakeConsumer()
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of(3))
        consumer.put.append(FakeMessage(3, error=Fault("_PARTITION_EOF")))
        events = await receiver.receive(events_max=1, wait_max=BRIEFLY)

        assert list(events) == []
        assert receiver.last_enqueued is not None
        assert receiver.last_enqueued.sequence_number == 2


async def test_a_reader_that_waits_for_room_goes_on_when_messages_are_taken(monkeypatch):
    """Not only when its longest wait is over."""
    monkeypatch.setattr(reader_module, "HOLD_S", 600)
    consumer = FakeConsumer(100)
    async with reading(consumer) as reader:
        receiver = await opened(reader, feed_of(room=CHUNK))

        assert await take(receiver, 100) == list(range(100))
        assert not consumer.paused
