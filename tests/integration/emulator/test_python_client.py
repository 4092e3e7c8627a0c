"""Azure's own ``azure-eventhub``: sending, management requests, receiving and errors."""

import asyncio
import gc
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from azure.eventhub import EventData
from azure.eventhub import aio as azure_aio
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType
from azure.eventhub.exceptions import (
    AuthenticationError,
    ConnectError,
    ConnectionLostError,
    EventDataSendError,
    EventHubError,
)

from eventproc.emulator import EventHubsEmulator

from .azure_clients import TIMEOUT_S, Reading, consumer_of, producer_of

# After a connection is lost Azure's client leaves its socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def _collect_open_sockets() -> Iterator[None]:
    """Collect sockets that Azure's client leaves open after a lost connection, without a
    warning."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


WITHOUT_RETRIES = {"retry_total": 0, "socket_timeout": 0.02}


def received(emulator, hub, count, **options):
    """Return the first events of a hub."""
    with Reading(consumer_of(emulator, hub), enough=count, **options) as reading:
        assert reading.has_enough.wait(TIMEOUT_S), (reading.events, reading.errors)
    return [event for _, event in reading.events]


def test_an_event_comes_back_with_all_its_properties(shared_emulator, hub):
    """Properties of each type, system properties, what the hub assigned, and the last enqueued
    event."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    properties: dict[str | bytes, object] = {
        "text": "naïve",
        "bytes": b"\x00\xff",
        "true": True,
        "false": False,
        "int": 2**31 - 1,
        "negative": -(2**31),
        "float": 1.5,
        "uuid": uuid.uuid4(),
        "time": moment,
        "none": None,
    }
    event = EventData(b"body")
    event.properties = {**properties}
    event.correlation_id, event.message_id = "correlation", "message"
    event.content_type = "text/plain"
    began = datetime.now(UTC) - timedelta(seconds=1)
    with producer_of(shared_emulator, hub) as producer:
        producer.send_event(event, partition_key="key")
        options = {"track_last_enqueued_event_properties": True}
        with Reading(consumer_of(shared_emulator, hub), 1, **options) as reading:
            assert reading.has_enough.wait(TIMEOUT_S)
        [(context, ours)] = reading.events

    got = {name.decode(): value for name, value in ours.properties.items()}
    assert got == {
        **properties,
        "text": "naïve".encode(),  # the client leaves strings as it finds them
        "time": int(moment.timestamp() * 1000),
    }
    assert (ours.body_as_str(), ours.partition_key) == ("body", b"key")
    assert (ours.correlation_id, ours.message_id) == ("correlation", "message")
    assert ours.content_type == "text/plain"
    assert (ours.sequence_number, ours.offset) == (0, "0")
    assert context.last_enqueued_event_properties["sequence_number"] == 0
    assert began < ours.enqueued_time <= datetime.now(UTC)


def test_bodies_of_every_kind_come_back(shared_emulator, hub):
    """Data in several sections, sequences and values, with the producer's own annotations."""
    bodies: dict[AmqpMessageBodyType, dict[str, object]] = {
        AmqpMessageBodyType.DATA: {"data_body": [b"one", b"two"]},
        AmqpMessageBodyType.SEQUENCE: {"sequence_body": [[1, b"x"], [b"y"]]},
        AmqpMessageBodyType.VALUE: {"value_body": {b"key": [1, 2.5, None]}},
    }
    own: dict[str, object] = {
        "annotations": {"x-own": 7},
        "footer": {"checksum": 1},
        "header": {"durable": True},
    }
    with producer_of(shared_emulator, hub) as producer:
        messages = [AmqpAnnotatedMessage(**own, **body) for body in bodies.values()]
        producer.send_batch(messages)
    events = received(shared_emulator, hub, 3)
    ours = {event.raw_amqp_message.body_type: event.raw_amqp_message for event in events}

    assert list(ours[AmqpMessageBodyType.DATA].body) == [b"one", b"two"]
    assert list(ours[AmqpMessageBodyType.SEQUENCE].body) == [[1, b"x"], [b"y"]]
    assert ours[AmqpMessageBodyType.VALUE].body == {b"key": [1, 2.5, None]}
    assert {message.annotations[b"x-own"] for message in ours.values()} == {7}
    assert {message.footer[b"checksum"] for message in ours.values()} == {1}
    assert {message.header.durable for message in ours.values()} == {True}


def test_batches_go_to_the_partition_of_their_key_or_id(shared_emulator, hub):
    """A batch without either goes to each partition in turn."""
    with producer_of(shared_emulator, hub) as producer:
        keyed = producer.create_batch(partition_key="key")
        named = producer.create_batch(partition_id="2")
        for index in range(20):
            keyed.add(EventData(f"keyed {index}"))
            named.add(EventData(f"named {index}"))
        producer.send_batch(keyed)
        producer.send_batch(named)
        for index in range(8):
            producer.send_batch([EventData(f"turn {index}")])
    logs = {
        partition_id: [event.body.decode() for event in shared_emulator.events(hub, partition_id)]
        for partition_id in shared_emulator.partition_ids(hub)
    }
    keyed_logs = [log for log in logs.values() if "keyed 0" in log]

    assert len(keyed_logs) == 1
    assert [body for body in keyed_logs[0] if "keyed" in body] == [
        f"keyed {index}" for index in range(20)
    ]
    assert [body for body in logs["2"] if "named" in body] == [
        f"named {index}" for index in range(20)
    ]
    assert [sum("turn" in body for body in log) for log in logs.values()] == [2, 2, 2, 2]


def test_an_event_above_a_megabyte_is_rejected(shared_emulator, hub):
    """An event of 900 kB is accepted. The rejection has the service's condition."""
    body = bytes(range(256)) * 3600
    with producer_of(shared_emulator, hub, **WITHOUT_RETRIES) as producer:
        producer.send_batch([EventData(body)])
        [event] = received(shared_emulator, hub, 1)

        assert b"".join(event.body) == body
        with pytest.raises(ValueError, match=r"exceeds|size"):
            producer.create_batch().add(EventData(bytes(1_100_000)))
        with pytest.raises(EventDataSendError, match="exceeds the limit"):
            producer.send_event(EventData(bytes(1_100_000)))


def test_properties_of_a_hub_and_its_partitions(shared_emulator, hub):
    """Azure's client reads the properties of the hub, of an empty partition and of one with
    events."""
    with producer_of(shared_emulator, hub) as producer:
        described = producer.get_eventhub_properties()
        empty = producer.get_partition_properties("1")
        producer.send_batch([EventData(b"1"), EventData(b"2")], partition_id="1")
        full = producer.get_partition_properties("1")
    last = shared_emulator.events(hub, "1")[-1]

    assert described["eventhub_name"] == hub
    assert described["partition_ids"] == ["0", "1", "2", "3"]
    assert datetime.now(UTC) - described["created_at"] < timedelta(minutes=10)
    assert (empty["is_empty"], empty["last_enqueued_sequence_number"]) == (True, -1)
    assert (full["is_empty"], full["beginning_sequence_number"]) == (False, 0)
    assert full["last_enqueued_sequence_number"] == 1
    assert full["last_enqueued_offset"] == str(last.offset)


def test_every_kind_of_starting_position_is_honoured(shared_emulator, hub):
    """Offset, sequence number, time and latest, inclusive or not, one in each partition."""
    with producer_of(shared_emulator, hub) as producer:
        for partition_id in "0123":
            batch = [EventData(str(index)) for index in range(6)]
            producer.send_batch(batch, partition_id=partition_id)
    offset = str(shared_emulator.events(hub, "0")[3].offset)
    time = shared_emulator.events(hub, "2")[0].enqueued_ms / 1000
    positions = {"0": offset, "1": 3, "2": datetime.fromtimestamp(time, UTC), "3": "@latest"}
    options = {
        "starting_position": positions,
        "starting_position_inclusive": {"0": True, "1": False, "2": True},
    }
    with Reading(consumer_of(shared_emulator, hub), enough=11, **options) as reading:
        assert reading.has_enough.wait(TIMEOUT_S)

    assert reading.bodies == {"0": ["3", "4", "5"], "1": ["4", "5"], "2": list("012345")}


def test_the_buffered_producer_sends_all_events(shared_emulator, hub):
    """The producer chooses partitions itself, by the same hash as the service."""
    sent, failed = [], []
    producer = producer_of(
        shared_emulator,
        hub,
        buffered_mode=True,
        max_wait_time=0.05,
        on_success=lambda events, _: sent.extend(events),
        on_error=lambda _, __, error: failed.append(error),
    )
    with producer:
        for index in range(100):
            producer.send_event(EventData(str(index)), partition_key=f"key {index % 10}")
        producer.flush()
    kept = [
        event
        for each in shared_emulator.partition_ids(hub)
        for event in shared_emulator.events(hub, each)
    ]

    assert failed == []
    assert len(sent) == len(kept) == 100


async def test_the_asynchronous_client_sends_and_receives(shared_emulator, hub):
    """Its code differs from that of the synchronous client."""
    producer = azure_aio.EventHubProducerClient.from_connection_string(
        shared_emulator.connection_string, eventhub_name=hub
    )
    async with producer:
        batch = await producer.create_batch(partition_id="0")
        for index in range(50):
            batch.add(EventData(str(index)))
        await producer.send_batch(batch)
        properties = await producer.get_partition_properties("0")
    got, done = [], asyncio.Event()

    async def on_event(context, event):
        got.append(event.body_as_str())
        if len(got) == 50:
            done.set()

    consumer = azure_aio.EventHubConsumerClient.from_connection_string(
        shared_emulator.connection_string,
        "$Default",
        eventhub_name=hub,
        load_balancing_interval=0.1,
    )
    async with consumer:
        receiving = asyncio.create_task(
            consumer.receive(on_event, partition_id="0", starting_position="-1")
        )
        async with asyncio.timeout(TIMEOUT_S):
            await done.wait()
    await receiving

    assert properties["last_enqueued_sequence_number"] == 49
    assert got == [str(index) for index in range(50)]


def test_an_unknown_hub_or_partition_raises_the_exceptions_of_the_service(shared_emulator, hub):
    """The token for an unknown hub is refused; the client itself checks partition ids."""
    with producer_of(shared_emulator, "no-such-hub", **WITHOUT_RETRIES) as producer:
        with pytest.raises(AuthenticationError, match="CBS Token authentication failed"):
            producer.send_event(EventData(b"x"))
        with pytest.raises(EventHubError):
            producer.get_eventhub_properties()
    with (
        producer_of(shared_emulator, hub, **WITHOUT_RETRIES) as producer,
        pytest.raises(ConnectError, match="Invalid partition 99"),
    ):
        producer.send_event(EventData(b"x"), partition_id="99")


def test_an_unknown_consumer_group_is_an_error(shared_emulator, hub):
    """``on_error`` gets the error, and nothing is received."""
    consumer = consumer_of(shared_emulator, hub, group="nobody", retry_total=0)
    with Reading(consumer, partition_id="0") as reading:
        assert reading.has_error.wait(TIMEOUT_S)

    assert "not-found" in str(reading.errors[0])
    assert f"{hub}/ConsumerGroups/nobody/Partitions/0" in str(reading.errors[0])


def test_a_second_receiver_with_the_same_owner_level_steals_the_link(shared_emulator, hub):
    """The first receiver gets ``ConnectionLostError``. Azure's processors rely on this."""
    first = Reading(
        consumer_of(shared_emulator, hub, retry_total=0), 1, partition_id="0", owner_level=0
    )
    with producer_of(shared_emulator, hub) as producer, first:
        producer.send_event(EventData(b"1"), partition_id="0")
        assert first.has_enough.wait(TIMEOUT_S)
        second = Reading(
            consumer_of(shared_emulator, hub, retry_total=0), 1, partition_id="0", owner_level=0
        )
        with second:
            assert second.has_enough.wait(TIMEOUT_S)
            assert first.has_error.wait(TIMEOUT_S)

    assert isinstance(first.errors[0], ConnectionLostError)
    assert "New receiver 'nil' with higher epoch of '0'" in str(first.errors[0])
    assert second.errors == []


def test_two_processors_of_azures_client_share_the_partitions(shared_emulator, hub):
    """The second one takes over partitions with the same owner level."""
    store = InMemoryCheckpointStore()
    options = {"checkpoint_store": store, "load_balancing_interval": 0.3}
    with producer_of(shared_emulator, hub) as producer:
        batch = [EventData(b"x")]
        for partition_id in "0123":
            producer.send_batch(batch, partition_id=partition_id)
        first = Reading(consumer_of(shared_emulator, hub, **options), 4)
        with first:
            assert first.has_enough.wait(TIMEOUT_S)
            second = Reading(consumer_of(shared_emulator, hub, **options), 2)
            with second:
                assert second.has_enough.wait(TIMEOUT_S)
                owners = {each["owner_id"] for each in store.list_ownership(*_names(store, hub))}

    assert len(owners) == 2
    assert set(first.bodies) == set("0123")
    assert ("OWNERSHIP_LOST") in {reason for _, reason in first.closed}


def _names(store, hub):
    """Return the namespace, hub and group under which a store has the ownerships of a hub."""
    return ("127.0.0.1", hub, "$Default") if store else ()


@contextmanager
def an_outage(emulator):
    """Stop the emulator inside the block."""
    emulator.stop()
    try:
        yield
    finally:
        emulator.start()


def test_clients_recover_after_an_outage():
    """A consumer continues at its position, and a producer sends again."""
    with (
        EventHubsEmulator({"orders": 1}) as emulator,
        producer_of(emulator, "orders", retry_backoff_factor=0.05) as producer,
        Reading(consumer_of(emulator, "orders", retry_backoff_factor=0.05), 2) as reading,
    ):
        producer.send_event(EventData(b"before"))
        with an_outage(emulator):
            pass
        producer.send_event(EventData(b"after"))
        assert reading.has_enough.wait(TIMEOUT_S), reading.errors

    assert sorted(set(reading.bodies["0"])) == ["after", "before"]
