"""The direct and the public receive path deliver equal events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from aiohttp import WSMsgType, web
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventproc.emulator import EventHubsEmulator
from eventproc.errors import ConfigurationError, SourceUnavailableError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.models._events import EVENT_FIELDS
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath, Transport
from eventproc.sources.eventhubs._direct_path import azure_internals
from eventproc.sources.eventhubs._errors import UnexpectedShapeError

GROUP = "$Default"
SOON = timedelta(seconds=10)


@pytest.fixture(scope="module", name="emulator")
def _emulator() -> Iterator[EventHubsEmulator]:
    """Yield an emulator that no test breaks."""
    with EventHubsEmulator({"any": 1, "hub": 1}) as emulator:
        yield emulator


def source_on(emulator: EventHubsEmulator, hub: str, **options: Any) -> EventHubSource:
    return EventHubSource.from_connection_string(
        emulator.connection_string_for(hub), options=EventHubOptions(**options)
    )


def publish(
    emulator: EventHubsEmulator, hub: str, *events: EventData | AmqpAnnotatedMessage
) -> int:
    """Publish events to partition 0 with Azure's producer; return the number of the first."""
    with EventHubProducerClient.from_connection_string(
        emulator.connection_string_for(hub)
    ) as producer:
        last = producer.get_partition_properties("0")["last_enqueued_sequence_number"]
        producer.send_batch(list(events), partition_id="0")
    return int(last) + 1


async def read(source: EventHubSource, first: int, count: int) -> list[ReceivedEvent]:
    """Return *count* events, beginning with *first*."""
    position = EventPosition.from_sequence_number(first, is_inclusive=True)
    receiver = await source.open_receiver(GROUP, "0", position)
    events: list[ReceivedEvent] = []
    while len(events) < count:
        batch = await receiver.receive(events_max=50, wait_max=SOON)

        assert batch, "nothing comes any more"

        events += batch
    return events


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
attached = st.one_of(
    texts,
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.binary(min_size=1, max_size=20),
    st.uuids(),
    st.just(UUID(int=7)),
)
values = st.recursive(
    attached,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(texts, inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
bodies: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(dict, data_body=st.binary(max_size=600)),
    st.builds(dict, data_body=st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=3)),
    st.builds(dict, value_body=values),
    st.builds(dict, sequence_body=st.lists(st.lists(values, min_size=1), min_size=1, max_size=2)),
)
own_properties = st.fixed_dictionaries(
    {},
    optional={
        "message_id": texts,
        "correlation_id": texts,
        "content_type": texts,
        "subject": texts,
        "group_sequence": st.integers(0, 2**32 - 1),
    },
)


@st.composite
def drawn_events(draw: st.DrawFn) -> AmqpAnnotatedMessage:
    """Draw any event that Azure's producer can send."""
    message = AmqpAnnotatedMessage(**draw(bodies), properties=draw(own_properties))
    properties: dict[str | bytes, Any] = draw(st.dictionaries(texts, attached, max_size=4))
    message.application_properties = properties
    return message


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(events=st.lists(drawn_events(), min_size=20, max_size=60))
def test_both_paths_give_equal_events(emulator, events):
    """Every field is equal, for any event of Azure's own producer."""
    first = publish(emulator, "any", *events)

    async def run(path: ReceivePath) -> list[ReceivedEvent]:
        async with source_on(emulator, "any", receive_path=path) as source:
            return await read(source, first, len(events))

    direct, public = (asyncio.run(run(path)) for path in ReceivePath)
    for mine, theirs in zip(direct, public, strict=True):
        for name in EVENT_FIELDS:
            assert getattr(mine, name) == getattr(theirs, name), name
        assert mine == theirs


@pytest.mark.parametrize("path", ReceivePath)
async def test_an_event_has_the_fields_that_the_producer_wrote(emulator, path):
    """With every form of body, on both paths."""
    rich = EventData([b"two ", b"sections"])
    rich.properties = {"kind": "order", "number": 3, "raw": b"\xff\x00", "ok": True}
    rich.message_id, rich.correlation_id, rich.content_type = "m1", "c1", "text/plain"
    value = AmqpAnnotatedMessage(value_body={"a": 1})
    sequence = AmqpAnnotatedMessage(sequence_body=[[1, "two"]])
    first = publish(emulator, "hub", rich, value, sequence)
    async with source_on(emulator, "hub", receive_path=path) as source:
        events = await read(source, first, 3)

    assert [event.body for event in events] == [b"two sections", b'{"a": 1}', b'[1, "two"]']
    assert events[0].properties == {"kind": "order", "number": 3, "raw": b"\xff\x00", "ok": True}
    assert (events[0].message_id, events[0].correlation_id) == ("m1", "c1")
    assert events[0].content_type == "text/plain"


@pytest.mark.parametrize("missing", ["release", "handle_token"])
async def test_an_unknown_version_of_azures_client_falls_back_to_the_public_path(
    emulator, monkeypatch, caplog, missing
):
    """With one warning, whether the difference is found at the start or at the first link."""
    if missing == "release":
        monkeypatch.setattr(azure_internals, "TRIED_RELEASES", ("0.",))
    else:
        expect = azure_internals._expect

        def expect_more(vendor_object: object, *names: str) -> None:
            if missing in names:
                raise UnexpectedShapeError(f"no {missing}")
            expect(vendor_object, *names)

        monkeypatch.setattr(azure_internals, "_expect", expect_more)
    first = publish(emulator, "hub", EventData(b"one"), EventData(b"two"))
    with caplog.at_level(logging.WARNING, logger="eventproc"):
        async with source_on(emulator, "hub", receive_path=ReceivePath.DIRECT) as source:
            events = await read(source, first, 2)
            again = await read(source, first, 1)

    warnings = [record for record in caplog.records if record.name.startswith("eventproc")]
    assert [event.body for event in events] == [b"one", b"two"]
    assert again[0] == events[0]
    assert [vars(record).get("event") for record in warnings] == ["direct_receive_unavailable"]


async def test_the_public_path_on_request_logs_no_warning(emulator, caplog):
    """The warning of the fallback does not appear if the public path was chosen."""
    first = publish(emulator, "hub", EventData(b"one"))
    with caplog.at_level(logging.WARNING, logger="eventproc"):
        async with source_on(emulator, "hub", receive_path=ReceivePath.PUBLIC) as source:
            (event,) = await read(source, first, 1)

    assert type(event) is ReceivedEvent
    assert [record for record in caplog.records if record.name.startswith("eventproc")] == []


async def test_an_unknown_hub_is_a_configuration_error_on_the_public_path(emulator):
    """Azure's client reports only that its token was not accepted; the error names the settings."""
    source = EventHubSource.from_connection_string(
        emulator.connection_string,
        eventhub_name="nowhere",
        options=EventHubOptions(receive_path=ReceivePath.PUBLIC),
    )
    async with source:
        with pytest.raises(SourceUnavailableError, match=r"'nowhere'.*was not accepted"):
            await source.partition_ids()
        with pytest.raises(ConfigurationError, match="Check the namespace"):
            await source.check_consumer_group(GROUP)


# --- another transport ---------------------------------------------------------------------------


@asynccontextmanager
async def websocket_to(port: int) -> AsyncIterator[int]:
    """Yield a port that accepts AMQP over a websocket and forwards it."""

    async def relay(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=["AMQPWSB10"])
        await socket.prepare(request)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def pass_back() -> None:
            while data := await reader.read(1000):
                await socket.send_bytes(data)
            await socket.close()

        passing = asyncio.create_task(pass_back())
        async for received in socket:
            if received.type is WSMsgType.BINARY:
                writer.write(received.data)
        writer.close()
        await passing
        return socket

    app = web.Application()
    app.router.add_get("/{path:.*}", relay)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.mark.filterwarnings("ignore:ssl=None is deprecated:DeprecationWarning")
async def test_events_are_received_over_a_websocket(emulator):
    """Frames that are split into messages of a thousand bytes are joined again."""
    first = await asyncio.to_thread(
        publish, emulator, "hub", *(EventData(b"%d" % number * 300) for number in range(50))
    )
    async with (
        websocket_to(emulator.port) as port,
        source_on(
            emulator,
            "hub",
            transport=Transport.WEBSOCKET,
            custom_endpoint=f"sb://127.0.0.1:{port}",
        ) as source,
    ):
        events = await read(source, first, 50)

    assert [event.body for event in events] == [b"%d" % number * 300 for number in range(50)]
