"""The receiver of a partition: it waits for messages, and says when it took some."""

from datetime import timedelta

import pytest

from eventproc.errors import PositionLostError, SourceError, SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.sources.kafka import KafkaEventSource
from eventproc.sources.kafka import _reader as reader_module
from eventproc.sources.kafka import _source as source_module
from eventproc.sources.kafka._offsets import Bounds
from tests.unit.eventproc.sources.kafka.fake_consumer import CHUNK, FakeConsumer
from tests.unit.eventproc.sources.kafka.messages import FakeMessage, Fault
from tests.unit.eventproc.sources.kafka.test_reader import SOON, feed_of, opened, reading, take

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


class FakeTopic(FakeConsumer):
    """A partition that begins at 0 and ends at 9; notes the epochs that it is assigned with."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def bounds(self, partition, timeout_s):
        return Bounds(0, 9)

    def assign(self, partition, offset, leader_epoch=None):
        super().assign(partition, offset)
        self.epochs.append(leader_epoch)


@pytest.mark.parametrize(
    ("log_end", "kind", "epoch"), [(6, PositionLostError, None), (-1, SourceUnavailableError, 4)]
)
async def test_a_position_that_is_used_again_after_its_loss_was_reported_is_accepted(
    log_end, kind, epoch, monkeypatch
):
    """An operator has chosen it; after other errors the broker checks where the log ended."""
    consumer, of_queries = FakeTopic(), FakeTopic()
    monkeypatch.setattr(
        source_module,
        "Consumer",
        lambda _, group: consumer if group == "readers" else of_queries,
    )
    words = f"log truncation detected at offset 8 (leader epoch 4): broker end offset is {log_end} "
    position = EventPosition.from_sequence_number(7)
    async with KafkaEventSource("localhost:9092", topic="orders") as source:
        receiver = await source.open_receiver("readers", "0", position)
        consumer.put.append(FakeMessage(8, leader_epoch=4))
        await take(receiver, 1)
        consumer.put.append(FakeMessage(9, error=Fault("_AUTO_OFFSET_RESET", words)))
        with pytest.raises(SourceError) as caught:
            await receiver.receive(events_max=1, wait_max=SOON)
        await receiver.close()
        await source.open_receiver("readers", "0", position)

    assert caught.type is kind
    assert consumer.epochs == [None, epoch]
