"""Publishers on the emulator and on a real Kafka broker: acknowledgements, refusals, outages."""

import asyncio
import gc
import warnings
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest

from eventproc import ConfigurationError, EventPosition
from eventproc.columns import to_columns
from eventproc.emulator import EventHubsEmulator
from eventproc.errors import EventRefusedError, SourceUnavailableError
from eventproc.models import REPLAYED_FROM, REPLAYED_FROM_PROPERTY, OutgoingEvent
from eventproc.ports import EventPublisher
from eventproc.sources.eventhubs import (
    EventHubOptions,
    EventHubPublisher,
    EventHubSource,
    ReceivePath,
)
from eventproc.sources.eventhubs._publisher import KEYS_FOR_A_CONNECTION
from eventproc.sources.kafka import KafkaPublisher
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.integration.sources.received_events import received
from tests.servers.kafka_broker import KafkaBroker

# After a connection is lost Azure's client leaves its socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

SOON = timedelta(seconds=10)
BRIEF = timedelta(milliseconds=200)


@pytest.fixture(autouse=True)
def _collect_open_sockets() -> Iterator[None]:
    """Collect sockets that Azure's client leaves open after a lost connection, without a
    warning."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(name="emulator")
def _emulator() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"hub": 3}) as emulator:
        yield emulator


def hub_publisher(emulator: EventHubsEmulator) -> EventHubPublisher:
    return EventHubPublisher.from_connection_string(
        emulator.connection_string_for("hub"),
        options=EventHubOptions(connect_timeout=timedelta(seconds=1)),
    )


def numbered(count: int, **fields: str) -> list[OutgoingEvent]:
    return [OutgoingEvent(body=b"%d" % number, **fields) for number in range(count)]  # type: ignore[arg-type]


def stored(emulator: EventHubsEmulator) -> int:
    """Return how many events the hub has."""
    return sum(len(emulator.events("hub", p)) for p in emulator.partition_ids("hub"))


# --- event hubs ----------------------------------------------------------------------------------


async def test_events_reach_their_partitions_in_order_with_key_and_properties(emulator):
    """Also more than fit into one batch; integers may have 64 bits."""
    values: dict[str, Any] = {
        "text": "ä",
        "long": 2**63 - 1,
        "least": -(2**63),
        "unsigned": 2**64 - 1,
    }
    large = [
        OutgoingEvent(body=b"%06d" % number * 50_000, partition_id="2") for number in range(10)
    ]
    async with hub_publisher(emulator) as publisher:
        await publisher.publish(numbered(50, partition_id="0"), patience=SOON)
        await publisher.publish(
            [OutgoingEvent(body=b"k", partition_key="anna", properties=values), *large],
            patience=SOON,
        )
    counts = [len(emulator.events("hub", str(partition))) for partition in range(3)]
    source = EventHubSource.from_connection_string(emulator.connection_string_for("hub"))
    first, *_, last = await received(source, counts)
    (keyed,) = [
        event for part in await received(source, counts) for event in part if event.body == b"k"
    ]

    assert sum(counts) == 61
    assert [e.body for e in first if e.body != b"k"] == [b"%d" % number for number in range(50)]
    assert [e.body for e in last if e.body != b"k"] == [event.body for event in large]
    assert (keyed.partition_key, keyed.properties) == ("anna", values)


@pytest.mark.parametrize("path", ReceivePath)
async def test_a_replayed_event_has_the_properties_of_its_first_publisher(emulator, path):
    """Where it came from is a system property; ids and content type are those of the event."""
    replayed = OutgoingEvent(
        body=b"again",
        partition_id="0",
        properties={"a": 1, REPLAYED_FROM_PROPERTY: "ns/hub/g/0/7"},
        content_type="text/plain",
        correlation_id="c",
        message_id="m",
    )
    async with hub_publisher(emulator) as publisher:
        await publisher.publish([*numbered(1, partition_id="0"), replayed], patience=SOON)
    source = EventHubSource.from_connection_string(
        emulator.connection_string_for("hub"), options=EventHubOptions(receive_path=path)
    )
    ((first, event),) = await received(source, [2])

    assert (event.replayed_from, event.properties) == ("ns/hub/g/0/7", {"a": 1})
    assert (event.content_type, event.correlation_id, event.message_id) == ("text/plain", "c", "m")
    assert (first.replayed_from, first.properties) == (None, {})


async def test_a_replayed_event_has_the_columns_of_its_first_publisher(emulator):
    """Also where columns are built from the bytes of the frames."""
    properties: dict[str, Any] = {"a": 1}
    events = [
        OutgoingEvent(body=b"0", partition_id="0", properties=properties),
        OutgoingEvent(
            body=b"1",
            partition_id="0",
            properties={**properties, REPLAYED_FROM_PROPERTY: "ns/hub/g/0/7"},
        ),
        OutgoingEvent(body=b"2", partition_id="0", properties=properties),
    ]
    async with hub_publisher(emulator) as publisher:
        await publisher.publish(events, patience=SOON)
    source = EventHubSource.from_connection_string(emulator.connection_string_for("hub"))
    rows: list[dict[str, Any]] = []
    async with source:
        receiver = await source.open_receiver("$Default", "0", EventPosition.earliest())
        receiver.read_columns()
        while len(rows) < 3:
            batch = await receiver.receive(events_max=100, wait_max=SOON)
            if batch:
                names = ("body", "properties", "systemProperties")
                rows += to_columns(batch, names, "0").to_pylist()
        await receiver.close()

    assert [row["properties"] for row in rows] == [[("a", "1")]] * 3
    assert [dict(row["systemProperties"]).get(REPLAYED_FROM) for row in rows] == [
        None,
        '"ns/hub/g/0/7"',
        None,
    ]


async def test_events_of_many_keys_stay_in_order_by_key(emulator):
    """They go over several connections, each key over one of them."""
    keys = [f"key {number}" for number in range(2 * KEYS_FOR_A_CONNECTION)]
    events = [
        OutgoingEvent(body=b"%d" % number, partition_key=key) for number in range(3) for key in keys
    ]
    async with hub_publisher(emulator) as publisher:
        await publisher.publish(events, patience=SOON)
    counts = [len(emulator.events("hub", str(partition))) for partition in range(3)]
    source = EventHubSource.from_connection_string(emulator.connection_string_for("hub"))
    bodies_by_key: dict[str | None, list[bytes]] = {}
    for event in chain(*await received(source, counts)):
        bodies_by_key.setdefault(event.partition_key, []).append(event.body)

    assert bodies_by_key == {key: [b"0", b"1", b"2"] for key in keys}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            OutgoingEvent(body=b"x" * 1024 * 1024),
            r"too large for event hub 'hub': 10485\d\d bytes, .* at most 1048576",
        ),
        (OutgoingEvent(body=None), "no body"),
        (OutgoingEvent(body=b"", partition_id="9"), "no partition '9': it has 0, 1, 2"),
        (OutgoingEvent(body=b"", partition_id="1", partition_key="a"), "give one of them"),
        (OutgoingEvent(body=b"", partition_key=""), "empty text"),
        (OutgoingEvent(body=b"", partition_key="\ud800"), "key cannot be encoded"),
        (OutgoingEvent(body=b"", properties={"x": ["a"]}), "'x' is a list"),
        (OutgoingEvent(body=b"", properties={"x": "\ud800"}), "cannot be encoded"),
        (OutgoingEvent(body=b"", properties={"x": 2**64}), "more than 64 bits"),
    ],
)
async def test_an_event_that_no_hub_accepts_is_refused_by_its_index(emulator, event, words):
    """A retry could not help; for a large event the message has its size and the limit."""
    async with hub_publisher(emulator) as publisher:
        with pytest.raises(EventRefusedError, match=words) as refused:
            await publisher.publish([OutgoingEvent(body=b"good"), event], patience=SOON)

    assert refused.value.index == 1


async def test_a_throttled_batch_is_sent_again_until_the_hub_accepts_it(emulator):
    """And after a broken connection; without a failure in between, every event is there once."""
    async with hub_publisher(emulator) as publisher:
        emulator.be_busy(timedelta(seconds=0.5))
        await publisher.publish(numbered(10), patience=SOON)
        once = stored(emulator)
        emulator.drop_connections()
        await publisher.publish(numbered(10), patience=SOON)

    assert once == 10
    assert stored(emulator) >= 20


async def test_no_event_is_lost_while_connections_break(emulator):
    """Batches without an acknowledgement are sent again; each event's first copy is in order."""
    events = [
        OutgoingEvent(body=b"%03d" % number * 20_000, partition_id=str(number % 3))
        for number in range(150)
    ]

    async def disturb() -> None:
        for _ in range(8):
            await asyncio.sleep(0.15)
            await asyncio.to_thread(emulator.drop_connections)

    async with hub_publisher(emulator) as publisher:
        disturbing = asyncio.create_task(disturb())
        await publisher.publish(events, patience=timedelta(seconds=60))
        await disturbing
    counts = [len(emulator.events("hub", str(partition))) for partition in range(3)]
    source = EventHubSource.from_connection_string(emulator.connection_string_for("hub"))
    found = [list(dict.fromkeys(e.body for e in part)) for part in await received(source, counts)]

    assert found == [[event.body for event in events[partition::3]] for partition in range(3)]


async def test_a_hub_that_stays_busy_is_an_error_after_the_patience(emulator):
    """Nothing was stored."""
    emulator.be_busy(timedelta(minutes=1))
    async with hub_publisher(emulator) as publisher:
        with pytest.raises(SourceUnavailableError, match="batch of 10 events to event hub 'hub'"):
            await publisher.publish(numbered(10), patience=BRIEF)

    assert stored(emulator) == 0


async def test_a_missing_hub_is_refused_when_the_publisher_is_opened(emulator):
    """As a wrong setting, which no retry corrects."""
    conn_str = emulator.connection_string_for("hub").replace("=hub", "=gone")
    publisher = EventHubPublisher.from_connection_string(conn_str)
    with pytest.raises(ConfigurationError, match=r"event hub 'gone'.*Check its name"):
        await publisher.open()


# --- Kafka ---------------------------------------------------------------------------------------


@pytest.fixture(name="kafka")
def _kafka(topic: KafkaTopic) -> KafkaPublisher:
    """Return a publisher. This broker reports the end of a partition only for batches of one."""
    return KafkaPublisher(
        topic.broker.bootstrap_servers, topic=topic.name, config={"batch.num.messages": 1}
    )


async def test_messages_reach_their_partitions_in_order_with_key_and_headers(kafka, topic):
    """Text and bytes stay what they are, numbers and booleans become JSON, a list several
    headers."""
    async with kafka:
        await kafka.publish(numbered(50, partition_id="0"), patience=SOON)
        await kafka.publish(
            [
                OutgoingEvent(
                    body=b"b",
                    partition_id="1",
                    partition_key="anna",
                    properties={"t": "ä", "b": b"\xff", "n": 7, "f": True, "l": ["x", "y"]},
                ),
                OutgoingEvent(body=None, partition_id="1", partition_key="anna"),
            ],
            patience=SOON,
        )
    first, second = await received(topic.source(), [50, 2])

    assert [event.body for event in first] == [b"%d" % number for number in range(50)]
    assert {event.partition_key for event in second} == {"anna"}
    assert second[0].properties == {
        "t": "ä",
        "b": b"\xff",
        "n": "7",
        "f": "true",
        "l": ("x", "y"),
    }
    assert second[1].system_properties == {"kafka-tombstone": True}


async def test_messages_of_a_key_are_in_one_partition(kafka, topic):
    """In that which Kafka's own clients choose; the hashes are those in Kafka's tests."""
    hashes = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    keys = {key: (value & 0x7FFFFFFF) % 3 for key, value in hashes.items()}
    async with kafka:
        await kafka.publish(
            [event for key in keys for event in numbered(5, partition_key=key)], patience=SOON
        )
        counts = Counter(keys.values())
    found = await received(topic.source(), [5 * counts[partition] for partition in range(3)])

    assert {
        event.partition_key: partition for partition, part in enumerate(found) for event in part
    } == keys


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            OutgoingEvent(body=b"x" * 1_000_001),
            "too large for topic.*have 1000001 bytes, and message.max.bytes of the client is 1000",
        ),
        (OutgoingEvent(body=b"", partition_id="99"), "_UNKNOWN_PARTITION.*'99'"),
        (OutgoingEvent(body=b"", partition_id="a"), "a topic's partitions are numbers"),
        (OutgoingEvent(body=b"", properties={"x": "\ud800"}), "surrogates"),
        (OutgoingEvent(body=b"", properties={"\ud800": "x"}), "surrogates"),
        (OutgoingEvent(body=b"", properties={"a\0b": "x"}), "has a NUL"),
    ],
)
async def test_an_event_that_no_topic_accepts_is_refused_by_its_index(kafka, event, words):
    """A retry could not help."""
    async with kafka:
        with pytest.raises(EventRefusedError, match=words) as refused:
            await kafka.publish([OutgoingEvent(body=b"good"), event], patience=SOON)

    assert refused.value.index == 1


async def test_a_missing_topic_is_refused_when_the_publisher_is_opened(broker):
    """A misspelt name creates no topic."""
    publisher = KafkaPublisher(broker.bootstrap_servers, topic="gone")
    with pytest.raises(ConfigurationError, match=r"topic 'gone'.*Unknown topic"):
        await publisher.open()


async def test_a_broker_that_is_down_is_an_error_after_the_patience():
    """The message has the client's last error."""
    with KafkaBroker() as broker:
        name = KafkaTopic(broker, "orders").name
        async with KafkaPublisher(broker.bootstrap_servers, topic=name) as publisher:
            await publisher.publish(numbered(3), patience=SOON)
            broker.stop()
            words = r"5 of 5 .* within 2 s; .*(_TRANSPORT|_ALL_BROKERS_DOWN)"
            with pytest.raises(SourceUnavailableError, match=words):
                await publisher.publish(numbered(5), patience=timedelta(seconds=2))


async def test_a_publisher_must_be_opened(emulator, topic):
    """The error says so."""
    publishers: list[EventPublisher] = [
        hub_publisher(emulator),
        KafkaPublisher(topic.broker.bootstrap_servers, topic=topic.name),
    ]
    for publisher in publishers:
        with pytest.raises(RuntimeError, match="open"):
            await publisher.publish(numbered(1), patience=BRIEF)
