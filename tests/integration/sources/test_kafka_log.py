"""What Kafka's logs contain, by the source and, as a yardstick, by Confluent's own consumer.

Transactions, compaction, retention, truncation, new partitions, headers, codecs.
"""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from eventproc import EventPosition, PartitionHandler, PositionLostError, RecreatedHub
from eventproc.sources.kafka import KafkaOptions
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.integration.sources.processors import KafkaFleet, events_named, lag_of, numbered, until

BRIEF = timedelta(seconds=0.3)
SOON = timedelta(seconds=10)
CODECS = ("none", "gzip", "snappy", "lz4")


@pytest.fixture(name="fleet")
def _fleet(topic):
    return KafkaFleet(topic)


def by_confluent(topic, partition=0):
    """Return offset, key, value and headers of each message, as Confluent's consumer reads them."""
    settings = {
        "group.id": "plain",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(topic.client | settings)
    consumer.assign([TopicPartition(topic.name, partition, 0)])
    found = []
    while (message := consumer.poll(10)) is not None and message.error() is None:
        found.append((message.offset(), message.key(), message.value(), message.headers() or []))
    consumer.close()
    assert message is not None, "its end was not reached"
    error = message.error()
    assert error is not None
    assert error.name() == "_PARTITION_EOF", error
    return found


async def by_source(topic, partition=0):
    """Return the same of each event, as the source reads it from the beginning."""
    found = []
    async with topic.source() as source:
        receiver = await source.open_receiver("g", str(partition), EventPosition.earliest())
        events = await receiver.receive(events_max=10_000, wait_max=SOON)
        while events:
            for event in events:
                is_tombstone = event.system_properties.get("kafka-tombstone", False)
                key = event.system_properties.get("kafka-key", event.partition_key)
                found.append(
                    (
                        event.sequence_number,
                        key.encode() if isinstance(key, str) else key,
                        None if is_tombstone else event.body,
                        dict(event.properties),
                    )
                )
            events = await receiver.receive(events_max=10_000, wait_max=BRIEF)
        await receiver.close()
    return found


def properties_of(headers):
    """Return headers as the source has them."""
    found: dict[str, list[object]] = {}
    for name, value in headers:
        try:
            text = value if value is None else value.decode()
        except UnicodeDecodeError:
            text = value
        found.setdefault(name, []).append(text)
    return {
        name: values[0] if len(values) == 1 else tuple(values) for name, values in found.items()
    }


async def read_by_confluent(topic, partition):
    """Return what Confluent's consumer reads, with properties as the source has them."""
    plain = await asyncio.to_thread(by_confluent, topic, partition)
    return [(*message[:3], properties_of(message[3])) for message in plain]


async def assert_same(topic, partition=0):
    """Check that both read the same; return it. A log that is compacted meanwhile is read again."""
    expected = await read_by_confluent(topic, partition)
    found = await by_source(topic, partition)
    while (after := await read_by_confluent(topic, partition)) != expected:
        expected = after
        found = await by_source(topic, partition)

    assert found == expected
    return expected


class Transactions:
    """A producer of transactions to partition 0."""

    def __init__(self, topic, name=""):
        self._topic = topic
        self._producer = Producer(topic.client | {"transactional.id": f"{topic.name}{name}"})
        self._producer.init_transactions(30)

    def begin(self, *bodies):
        """Publish these, and leave the transaction open."""
        self._producer.begin_transaction()
        for body in bodies:
            self._producer.produce(self._topic.name, body, partition=0)
        assert self._producer.flush(30) == 0

    def commit(self, *bodies):
        """Publish these, and commit; without any, what was begun."""
        if bodies:
            self.begin(*bodies)
        self._producer.commit_transaction(30)

    def abort(self, *bodies):
        """Publish these, and abort."""
        if bodies:
            self.begin(*bodies)
        self._producer.abort_transaction(30)


async def test_committed_transactions_are_read_and_leave_no_lag(fleet, caplog):
    """Neither markers nor aborted events count as missing events or as lag."""
    transactions = await asyncio.to_thread(Transactions, fleet.hub)
    await asyncio.to_thread(transactions.commit, b"one", b"two")
    await asyncio.to_thread(transactions.abort, *numbered(0, 20))
    async with fleet.processor("a") as processor:
        await fleet.until(2)
        await asyncio.to_thread(transactions.commit, b"three")
        await fleet.until(3)
        await asyncio.to_thread(transactions.abort, b"no")
        await until(lambda: lag_of(processor, "0") == 0)
    async with fleet.hub.source() as source:
        properties = await source.partition_properties("0")
    found = await assert_same(fleet.hub)

    assert [event.body for event in fleet.events] == [b"one", b"two", b"three"]
    assert [offset for offset, *_ in found] == [0, 1, 24]
    assert properties.last_enqueued_sequence_number == 24
    assert events_named(caplog, "events_missing") == []


async def test_events_of_an_open_transaction_wait_and_hold_back_those_after_them(fleet):
    """As with any consumer that reads what is committed; a restart in between loses none."""
    open_one = await asyncio.to_thread(Transactions, fleet.hub)
    await fleet.publish(0, b"before")
    await asyncio.to_thread(open_one.begin, b"in it")
    await fleet.publish(0, b"after")
    async with fleet.processor("a") as processor:
        await fleet.until(1)
        await until(lambda: lag_of(processor, "0") == 0)
        await assert_same(fleet.hub)
    held_back = [event.body for event in fleet.events]
    async with fleet.processor("b"):
        await asyncio.to_thread(open_one.commit)
        await fleet.until(3)

    assert held_back == [b"before"]
    assert [event.body for event in fleet.events] == [b"before", b"in it", b"after"]


async def test_a_receiver_that_begins_at_the_end_gets_what_is_committed_later(topic):
    """The end is that of committed events: those of an open transaction come when it ends."""
    open_one = await asyncio.to_thread(Transactions, topic)
    topic.publish(0, b"before")
    await asyncio.to_thread(open_one.begin, b"in it")
    async with topic.source() as source:
        latest = await source.open_receiver("g", "0", EventPosition.latest())
        await asyncio.to_thread(open_one.commit)
        events = await latest.receive(events_max=20, wait_max=SOON)

    assert [event.body for event in events] == [b"in it"]


async def test_what_compaction_left_is_read_and_no_event_counts_as_missing(kafka, caplog):
    """Tombstones too, from before and after the checkpoint."""
    topic = await asyncio.to_thread(
        KafkaTopic,
        kafka,
        "compacted",
        1,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.001",
        delete_retention_ms="600000",
    )
    fleet = KafkaFleet(topic)
    for number in range(30):
        await fleet.publish(0, b"%d" % number, key=b"%d" % (number % 3))
    await fleet.publish(0, None, key=b"0")
    async with fleet.processor("a"):
        await fleet.until(4)
        until_s = time.monotonic() + 60
        while (found := await assert_same(topic)) and len(found) > 5:
            assert time.monotonic() < until_s, found
            # Only a segment that is not written any more is compacted.
            await fleet.publish(0, b"last", key=b"last")
            await asyncio.sleep(0.3)
        await until(lambda: fleet.events[-1].sequence_number == found[-1][0])
    handled = len(fleet.events)
    async with fleet.processor("b") as processor:
        await fleet.publish(0, b"new", key=b"new")
        await until(lambda: fleet.events[-1].body == b"new")
        await until(lambda: lag_of(processor, "0") == 0)

    assert (b"0", None) in [(key, value) for _, key, value, _ in found]
    assert found[0][0] > 20
    assert len(fleet.events) == handled + 1
    assert events_named(caplog, "events_missing") == []


async def test_retention_that_overtakes_a_reader_is_reported_and_reading_goes_on(topic, caplog):
    """What was not read yet is gone; the events that are left are handled, each once."""
    fleet = KafkaFleet(topic)
    await fleet.publish(0, *numbered(0, 3_000))
    slow = topic.source(options=KafkaOptions(prefetch=500))
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    class Slow(PartitionHandler):
        async def process_events(self, context, events):
            begun.set()
            await may_go_on.wait()
            fleet.events += events

    async with fleet.processor("a", Slow, source=slow):
        await begun.wait()
        gone = TopicPartition(topic.name, 0, 2_900)
        deleting = topic.admin.delete_records([gone])[gone]
        await asyncio.to_thread(deleting.result, 20)
        may_go_on.set()
        await until(lambda: fleet.events and fleet.events[-1].body == b"2999")
    found = await assert_same(topic)
    bodies = [event.body for event in fleet.events]

    assert [offset for offset, *_ in found] == list(range(2_900, 3_000))
    assert bodies[-100:] == numbered(2_900, 3_000)
    assert bodies[:-100] == numbered(0, len(bodies) - 100)  # They had been read before.
    assert len(bodies) < 3_000
    assert len(events_named(caplog, "events_missing")) == 1


def lose_newest(broker, topic, count, of_count):
    """Kill the broker, and start it without the newest events, as if they were never on the disk.

    Each event has to be a batch of its own, of the same size.
    """
    broker.kill()
    segment = broker.log_folder(topic.name, 0) / "00000000000000000000.log"
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size * (of_count - count) // of_count)
    broker.start()


async def publish_singly(fleet, *bodies):
    """Publish each event as a batch of its own."""
    for body in bodies:
        await fleet.publish(0, body)


@pytest.mark.long
async def test_events_lost_by_an_unclean_restart_stop_the_partition(kafka, topic, caplog):
    """With ``earliest``, what is there now is read from the first event."""
    fleet = KafkaFleet(topic)
    await publish_singly(fleet, *numbered(0, 10))
    async with fleet.processor("a") as processor:
        await fleet.until(10)
        await asyncio.to_thread(lose_newest, kafka, topic, 4, 10)
        await until(lambda: events_named(caplog, "hub_recreated"))
        assert processor.statistics().owned
    async with fleet.processor("b", recreated_hub=RecreatedHub.EARLIEST):
        await fleet.publish(0, b"last")
        await until(lambda: fleet.events[-1].body == b"last")
    found = await assert_same(topic)

    assert [event.body for event in fleet.events[:10]] == numbered(0, 10)
    assert [event.body for event in fleet.events[10:]] == [body for _, _, body, _ in found]
    assert len(found) == 7


async def test_new_events_in_the_place_of_lost_ones_are_not_skipped(kafka, topic):
    """The log is longer again when it is read on: only the leader's epoch shows what was lost."""
    fleet = KafkaFleet(topic)
    await publish_singly(fleet, *numbered(0, 10))
    async with topic.source() as source:
        receiver = await source.open_receiver("g", "0", EventPosition.earliest())
        assert len(await receiver.receive(events_max=10, wait_max=SOON)) == 10
        await asyncio.to_thread(lose_newest, kafka, topic, 4, 10)
        await publish_singly(fleet, *[b"n%d" % number for number in range(8)])
        await receiver.close()
        position = EventPosition.from_sequence_number(9)
        again = await source.open_receiver("g", "0", position)
        with pytest.raises(PositionLostError, match="broker end offset is 6"):
            await again.receive(events_max=10, wait_max=SOON)
        await again.close()
        # An operator said to begin there.
        moved = await source.open_receiver("g", "0", position)
        events = await moved.receive(events_max=10, wait_max=SOON)

    assert events[0].body == b"n4"


async def test_a_partition_that_is_added_is_served_from_its_beginning(fleet):
    """While the group runs, also by a processor that starts later."""
    await fleet.publish(0, b"old")
    async with fleet.processor("a", partition_ids_interval=BRIEF):
        await fleet.until(1)
        await asyncio.to_thread(fleet.hub.grow)
        await fleet.publish(3, *numbered(0, 5))
        await fleet.until(6)
    await fleet.publish(3, *numbered(5, 7))
    async with fleet.processor("b"):
        await fleet.until(8)

    assert [body for partition, body in fleet.handled if partition == "3"] == numbered(0, 7)
    assert len(await assert_same(fleet.hub, 3)) == 7


@pytest.mark.parametrize(
    "codec", ["zstd", *(pytest.param(c, marks=pytest.mark.long) for c in CODECS)]
)
async def test_keys_headers_and_codecs_are_read_as_by_the_client(topic, codec):
    """Headers that are empty, null, not text, repeated, or have odd names; keys of any bytes."""
    producer = Producer(topic.client | {"compression.type": codec, "linger.ms": 100})
    for key in (None, b"", b"anna", "ä".encode(), b"\xff\xfe"):
        every: list[list[tuple[str, Any]]] = [
            [],
            [("a", b"1"), ("b", b""), ("c", None), ("ä", "ö".encode())],
            [("a", b"1"), ("a", b"2"), ("a", b"\xff")],
            [("", b"no name"), ("traceparent", b"00-ab-cd-01")],
        ]
        for headers in every:
            producer.produce(topic.name, b"x" * 100, key, partition=0, headers=headers)
    assert await asyncio.to_thread(producer.flush, 20) == 0

    assert len(await assert_same(topic)) == 20
