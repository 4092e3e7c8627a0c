"""The publisher of event hubs on the emulator: acknowledgements, refusals, outages."""

import asyncio
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
from eventproc.sources.eventhubs import (
    EventHubOptions,
    EventHubPublisher,
    EventHubSource,
    ReceivePath,
)
from eventproc.sources.eventhubs._publisher import KEYS_FOR_A_CONNECTION
from tests.integration.sources.received_events import received

# After a connection is lost Azure's client leaves its socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

SOON = timedelta(seconds=10)
BRIEF = timedelta(milliseconds=200)


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


async def test_a_publisher_must_be_open(emulator):
    """The error says so, before it is opened and after it was closed."""
    publisher = hub_publisher(emulator)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="open"):
            await publisher.publish(numbered(1), patience=BRIEF)
        async with publisher:
            await publisher.publish(numbered(1), patience=SOON)
