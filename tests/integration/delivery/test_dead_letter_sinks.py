"""Dead-letter sinks with real storage: a container, and another event hub."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext
from azure.storage.blob import ContainerClient

from eventproc import ConfigurationError, ConsumerGroup, DeadLetter, DeadLetterError, ReceivedEvent
from eventproc.dead_letters.blob import BlobDeadLetterSink
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubDeadLetterSink
from tests.scenarios.loops import in_two_loops

GROUP = ConsumerGroup(fully_qualified_namespace="NS.example", eventhub_name="Orders")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def dead_letter(body: bytes = b"caf\xc3\xa9", **changes) -> DeadLetter:
    """Return a dead letter of event 7."""
    event = ReceivedEvent(
        body=body,
        sequence_number=7,
        offset="4711",
        enqueued_time=NOON,
        partition_key="customer-1",
        properties={"kind": "order", "count": 3},
        system_properties={"x": b"\x00"},
        content_type="text/plain",
        message_id="m-7",
    )
    fields = {
        "event": event,
        "group": GROUP,
        "partition_id": "2",
        "owner_id": "a",
        "attempt_count": 3,
        "error_type": "ValueError",
        "error_message": "no such order",
        "traceback": "Traceback ...",
        "given_up_at": NOON,
    }
    return DeadLetter(**{**fields, **changes})


async def test_a_blob_sink_writes_one_json_file_for_each_event(storage, container):
    """The file has all fields; storing the same event again replaces it."""
    sink = BlobDeadLetterSink.from_connection_string(storage, container)
    await sink.open()
    for attempt_count in (3, 4):
        await sink.store(dead_letter(attempt_count=attempt_count))
    await sink.store(dead_letter(b"\xff\xfe", partition_id="3"))
    await sink.close()
    await sink.close()
    with ContainerClient.from_connection_string(storage, container) as client:
        names = [blob.name for blob in client.list_blobs()]
        stored = [json.loads(client.download_blob(name).readall()) for name in names]

    assert names == [
        "dead-letters/ns.example/orders/$default/2/0000000000000000007.json",
        "dead-letters/ns.example/orders/$default/3/0000000000000000007.json",
    ]
    assert stored[0]["attempt_count"] == 4
    assert stored[0]["event"]["body"] == "café"
    assert stored[0]["event"]["properties"] == {"kind": "order", "count": 3}
    assert stored[0]["event"]["system_properties"] == {"x": {"base64": "AA=="}}
    assert (stored[0]["error_type"], stored[0]["traceback"]) == ("ValueError", "Traceback ...")
    assert (stored[0]["offset"], stored[0]["owner_id"]) == ("4711", "a")
    assert stored[1]["event"]["body_base64"] == "//4="


async def test_a_blob_sink_whose_container_is_missing_cannot_be_opened(storage):
    """A typo in its name is an error before the first dead letter."""
    sink = BlobDeadLetterSink.from_connection_string(storage, "no-such-container")

    with pytest.raises(ConfigurationError, match="create it"):
        await sink.open()


def test_a_malformed_connection_string_is_an_error_without_the_key():
    """The message does not repeat it, because it may contain a key."""
    with pytest.raises(ConfigurationError, match="AccountName") as caught:
        BlobDeadLetterSink.from_connection_string("Endpoint=sb://x/;SharedAccessKey=secret", "c")

    assert "secret" not in str(caught.value)


async def test_a_blob_sink_without_storage_raises_dead_letter_error(azurite):
    """The dead letter is not stored, and the caller can try again."""
    with ContainerClient.from_connection_string(azurite.connection_string, "letters") as client:
        client.create_container()
    sink = BlobDeadLetterSink.from_connection_string(azurite.connection_string, "letters")
    await sink.open()
    azurite.stop()
    with pytest.raises(DeadLetterError):
        await sink.store(dead_letter())
    azurite.start()
    await sink.store(dead_letter())
    await sink.close()


def received(emulator: EventHubsEmulator, hub: str, count: int) -> Sequence[EventData]:
    """Return what Azure's client reads from a hub."""
    events: list[EventData] = []
    client = EventHubConsumerClient.from_connection_string(
        emulator.connection_string_for(hub), "$Default"
    )

    def on_event(_: PartitionContext, event: EventData | None) -> None:
        if event is not None:
            events.append(event)
        if len(events) == count:
            client.close()

    with client:
        client.receive(on_event, starting_position="-1", max_wait_time=1)
    return events


async def test_a_hub_sink_publishes_the_event_with_its_error_as_properties(tmp_path):
    """Body, key, properties and ids are those of the event; properties too long for the hub are
    left out, and an event for which that is not enough is sent as JSON in parts."""
    with EventHubsEmulator({"dead": 1}) as emulator:
        sink = EventHubDeadLetterSink.from_connection_string(emulator.connection_string_for("dead"))
        await sink.open()
        await sink.store(dead_letter())
        room = 1024 * 1024 - 3000
        await sink.store(dead_letter(b"x" * room, traceback="t" * 8000))
        await sink.store(dead_letter(b"x" * 1024 * 1024))
        await sink.close()
        whole, cut, *parts = received(emulator, "dead", 4)

    properties = {
        (key.decode() if isinstance(key, bytes) else key): (
            value.decode() if isinstance(value, bytes) else value
        )
        for key, value in (whole.properties or {}).items()
    }
    assert whole.body_as_str() == "café"
    assert whole.partition_key == b"customer-1"
    assert (properties["kind"], properties["count"]) == ("order", 3)
    assert properties["eventproc_error_type"] == "ValueError"
    assert properties["eventproc_sequence_number"] == 7
    assert properties["eventproc_letter_id"] == "ns.example/orders/$default/2/7"
    assert (whole.content_type, whole.message_id) == ("text/plain", "m-7")
    written = {key if isinstance(key, bytes) else key.encode() for key in cut.properties or {}}
    assert b"eventproc_error_type" in written
    assert b"eventproc_traceback" not in written
    content = json.loads(b"".join(part.body_as_str().encode() for part in parts))
    assert content["event"]["body"] == "x" * 1024 * 1024


async def test_a_hub_sink_stores_an_event_whose_number_needs_64_bits():
    """Azure's client encodes an integer in 32 bits unless its type is named."""
    number = 2**40
    event = replace(dead_letter().event, sequence_number=number, properties={"least": -(2**63)})
    with EventHubsEmulator({"dead": 1}) as emulator:
        sink = EventHubDeadLetterSink.from_connection_string(emulator.connection_string_for("dead"))
        await sink.open()
        await sink.store(dead_letter(event=event))
        await sink.close()
        (stored,) = received(emulator, "dead", 1)
    found: Any = stored.properties

    assert (found[b"eventproc_sequence_number"], found[b"least"]) == (number, -(2**63))


async def test_a_hub_sink_whose_hub_is_missing_cannot_be_opened():
    """The message says to check the name."""
    with EventHubsEmulator({"dead": 1}) as emulator:
        conn_str = emulator.connection_string_for("dead").replace("=dead", "=gone")
        sink = EventHubDeadLetterSink.from_connection_string(conn_str)
        with pytest.raises(ConfigurationError, match="Check its name"):
            await sink.open()


def test_a_dead_letter_of_any_event_is_json():
    """Keys and values of AMQP that JSON does not have are written as text, Base64 or lists."""
    values: Any = {b"key": float("nan"), "map": {1: [b"\x00", (NOON, 2.5)]}, "set": {7}}
    event = replace(dead_letter().event, properties=values, system_properties=values)
    written = json.loads(replace(dead_letter(), event=event).to_json(), parse_constant=pytest.fail)

    assert written["event"]["properties"] == {
        "key": "nan",
        "map": {"1": [{"base64": "AA=="}, [NOON.isoformat(), 2.5]]},
        "set": "{7}",
    }
    assert written["event"]["system_properties"] == written["event"]["properties"]


async def test_a_sink_that_was_closed_can_be_opened_in_another_event_loop(storage, container):
    """As a processor does that is started again; letters of several partitions come at once."""
    with EventHubsEmulator({"letters": 1}) as emulator:
        for sink in (
            EventHubDeadLetterSink.from_connection_string(
                emulator.connection_string_for("letters")
            ),
            BlobDeadLetterSink.from_connection_string(storage, container),
        ):

            async def use(sink=sink):
                await sink.open()
                await asyncio.gather(*(sink.store(dead_letter()) for _ in range(8)))
                await sink.close()

            await in_two_loops(use)
