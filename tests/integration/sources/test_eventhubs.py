"""Event Hubs over connections that break, stay silent, or lead to another service.

The emulator checks no key and no signature, so a *wrong* key cannot be tested here; a refused token
is, by the name of a hub that does not exist.
"""

import asyncio
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Self

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventproc.emulator import EmulatorConfiguration, EmulatorServer, EventHubsEmulator
from eventproc.emulator._hub.configuration import hubs_of
from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath

GROUP = "$Default"
SOON = timedelta(seconds=5)
EARLIEST = EventPosition.earliest()
DIRECT = EventHubOptions(receive_path=ReceivePath.DIRECT)
"""For tests that need short times, limits in bytes, or the reason of an error."""

SHORT_TIMEOUT = replace(DIRECT, connect_timeout=timedelta(seconds=0.4))


@pytest.fixture(scope="module", name="shared")
def _shared() -> Iterator[EventHubsEmulator]:
    """Yield an emulator that no test breaks."""
    with EventHubsEmulator({"hub": 2, "large": 1, "bulky": 1}) as emulator:
        yield emulator


@pytest.fixture(name="emulator")
def _emulator() -> Iterator[EventHubsEmulator]:
    """Yield an emulator for one test, which breaks it."""
    with EventHubsEmulator({"hub": 2}) as emulator:
        yield emulator


def source_on(
    emulator: EventHubsEmulator | EmulatorServer,
    hub: str = "hub",
    options: EventHubOptions | None = None,
) -> EventHubSource:
    return EventHubSource.from_connection_string(
        emulator.connection_string, eventhub_name=hub, options=options
    )


def publish(
    emulator: EventHubsEmulator | EmulatorServer,
    hub: str,
    *events: EventData | AmqpAnnotatedMessage,
    at_once: int = 500,
    partition_id: str = "0",
) -> None:
    """Publish events to one partition with Azure's producer."""
    with EventHubProducerClient.from_connection_string(
        emulator.connection_string, eventhub_name=hub
    ) as producer:
        for begin in range(0, len(events), at_once):
            producer.send_batch(list(events[begin : begin + at_once]), partition_id=partition_id)


async def take(receiver: PartitionReceiver, count: int) -> list[ReceivedEvent]:
    """Receive until *count* events are there, or none comes any more."""
    events: list[ReceivedEvent] = []
    while len(events) < count:
        batch = await receiver.receive(events_max=300, wait_max=SOON)
        if not batch:
            break
        events += batch
    return events


async def ending_of(receiver: PartitionReceiver) -> type[SourceError]:
    """Return the type of the error with which a receiver ends."""
    for _ in range(100):
        try:
            await receiver.receive(events_max=300, wait_max=SOON)
        except SourceError as error:
            return type(error)
    raise AssertionError("it never ended")


# --- breaking ------------------------------------------------------------------------------------


async def test_a_restart_of_the_service_loses_no_event(emulator):
    """Receiver and source raise ``SourceUnavailableError`` meanwhile, and then reading
    continues."""
    publish(emulator, "hub", *(EventData(b"%d" % number) for number in range(300)))
    async with source_on(emulator) as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        before = list(await receiver.receive(events_max=100, wait_max=SOON))
        await asyncio.to_thread(emulator.stop)
        ending = await ending_of(receiver)
        with pytest.raises(SourceUnavailableError):
            await source.open_receiver(GROUP, "0", EARLIEST)
        with pytest.raises(SourceUnavailableError):
            await source.partition_ids()
        await asyncio.to_thread(emulator.start)
        again = await source.open_receiver(GROUP, "0", EventPosition.from_offset(before[-1].offset))
        after = await take(again, 300 - len(before))

    assert ending is SourceUnavailableError
    assert [event.body for event in before + after] == [b"%d" % number for number in range(300)]


async def test_a_dropped_connection_ends_only_its_own_receiver(emulator):
    """Each partition has a connection of its own."""
    publish(emulator, "hub", EventData(b"one"))
    publish(emulator, "hub", EventData(b"two"), partition_id="1")
    async with source_on(emulator) as source:
        cut = await source.open_receiver(GROUP, "1", EARLIEST)
        whole = await source.open_receiver(GROUP, "0", EARLIEST)

        assert [event.body for event in await take(cut, 1)] == [b"two"]  # so its link is open

        await asyncio.to_thread(emulator.drop_connections, "hub", "1")

        assert await ending_of(cut) is SourceUnavailableError
        assert [event.body for event in await take(whole, 1)] == [b"one"]


async def test_a_stolen_link_raises_receiver_displaced_error(emulator):
    """Only this error hints that the partition has a new owner."""
    publish(emulator, "hub", EventData(b"one"))
    async with source_on(emulator) as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)

        assert [event.body for event in await take(receiver, 1)] == [b"one"]  # so its link is open

        await asyncio.to_thread(emulator.displace_receivers, "hub", "0")

        assert await ending_of(receiver) is ReceiverDisplacedError


async def test_a_silent_service_is_unavailable_after_the_timeout(emulator):
    """Opening and management requests end after ``connect_timeout``; closing does not wait."""
    async with source_on(emulator, options=SHORT_TIMEOUT) as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        await asyncio.to_thread(emulator.fall_silent, timedelta(seconds=30))
        for attempt in (
            source.open_receiver(GROUP, "1", EARLIEST),
            source.partition_ids(),
            source.check_consumer_group(GROUP),
        ):
            begun = time.monotonic()
            with pytest.raises(SourceUnavailableError, match=r"no answer within 0\.4 s"):
                await attempt

            assert time.monotonic() - begun < 10

        begun = time.monotonic()
        await receiver.close()
        await source.close()

        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("fault", ["refuse_connections", "refuse_links"])
async def test_a_busy_service_is_unavailable_not_misconfigured(emulator, fault):
    """The error is ``SourceUnavailableError``, so a processor that starts then tries again."""
    async with source_on(emulator, options=SHORT_TIMEOUT) as source:
        await asyncio.to_thread(getattr(emulator, fault), timedelta(seconds=30))
        with pytest.raises(SourceUnavailableError):
            await source.open_receiver(GROUP, "0", EARLIEST)
        with pytest.raises(SourceUnavailableError):
            await source.check_consumer_group(GROUP)
        await asyncio.to_thread(emulator.clear_faults)
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)

        assert list(await receiver.receive(events_max=1, wait_max=timedelta(0))) == []


async def test_a_server_that_does_not_speak_amqp_is_unavailable():
    """A server of another kind raises ``SourceUnavailableError``."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        credential = AzureNamedKeyCredential("name", "key")
        options = replace(SHORT_TIMEOUT, is_tls_on=False)
        async with EventHubSource(
            f"127.0.0.1:{port}", "hub", credential, options=options
        ) as source:
            with pytest.raises(SourceUnavailableError):
                await source.partition_ids()


async def test_a_silent_connection_ends_after_silence_max(emulator):
    """Otherwise its partition would not be read until the operating system closes the
    connection."""
    async with source_on(
        emulator, options=EventHubOptions(silence_max=timedelta(seconds=1))
    ) as source:
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        await asyncio.to_thread(emulator.fall_silent, timedelta(seconds=30))
        with pytest.raises(SourceUnavailableError):
            await receiver.receive(events_max=1, wait_max=timedelta(seconds=8))


# --- bounded -------------------------------------------------------------------------------------


async def test_the_buffer_is_limited_by_prefetch(shared):
    """The link stays open, and all events are delivered in the end."""
    publish(shared, "large", *(EventData(b"%d" % number) for number in range(3000)))
    async with source_on(shared, "large", EventHubOptions(prefetch=100)) as source:
        receiver: Any = await source.open_receiver(GROUP, "0", EARLIEST)
        sizes = []
        events: list[ReceivedEvent] = []
        while len(events) < 3000:
            await asyncio.sleep(0.01 if len(events) < 300 else 0)
            sizes.append(len(receiver._buffer))
            events += await receiver.receive(events_max=30, wait_max=SOON)

        assert max(sizes) <= 100

    assert [event.body for event in events] == [b"%d" % number for number in range(3000)]


async def test_the_buffer_is_limited_by_prefetch_bytes(shared):
    """1000 events of 100 kB would be 100 MB for each partition."""
    room = 1024 * 1024
    publish(shared, "bulky", *(EventData(b"%d" % number) for number in range(50)))
    publish(shared, "bulky", *(EventData(bytes(100_000)) for _ in range(200)), at_once=10)
    async with source_on(shared, "bulky", replace(DIRECT, prefetch_bytes=room)) as source:
        receiver: Any = await source.open_receiver(GROUP, "0", EARLIEST)
        held = 0
        while not held or receiver._credit.held_bytes != held:
            held = receiver._credit.held_bytes
            await asyncio.sleep(0.3)
        events = await take(receiver, 250)

    assert held <= 2 * room + 256 * 1024
    assert [len(event.body) for event in events[50:]] == [100_000] * 200


async def test_an_idle_link_is_kept_open_by_heartbeats():
    """Without them, service or client would close the connection."""
    configuration = EmulatorConfiguration(
        hubs=hubs_of({"hub": 1}), port=0, idle_timeout=timedelta(seconds=5)
    )
    options = EventHubOptions(silence_max=timedelta(seconds=4))
    async with (
        EmulatorServer(configuration) as emulator,
        source_on(emulator, options=options) as source,
    ):
        receiver = await source.open_receiver(GROUP, "0", EARLIEST)
        idle = await receiver.receive(events_max=1, wait_max=timedelta(seconds=7))
        await asyncio.to_thread(publish, emulator, "hub", EventData(b"late"))

        assert list(idle) == []
        assert [event.body for event in await take(receiver, 1)] == [b"late"]


# --- addresses and credentials -------------------------------------------------------------------


async def test_an_unknown_hub_is_a_configuration_error(shared):
    """The token for it is refused; the message names hub and host, and not the key."""
    async with source_on(shared, "nowhere", DIRECT) as source:
        with pytest.raises(SourceRejectedError):
            await source.partition_ids()
        with pytest.raises(ConfigurationError) as caught:
            await source.check_consumer_group(GROUP)

    assert "'nowhere'" in str(caught.value)
    assert "could not be found" in str(caught.value)
    assert "SAS_KEY_VALUE" not in str(caught.value)


async def test_an_unknown_host_is_a_configuration_error_at_the_start():
    """During a run it is ``SourceUnavailableError``, and tried again."""
    source = EventHubSource("nowhere.invalid", "hub", AzureNamedKeyCredential("name", "key"))
    async with source:
        with pytest.raises(SourceUnavailableError, match="not known"):
            await source.partition_ids()
        with pytest.raises(ConfigurationError, match=r"nowhere\.invalid"):
            await source.check_consumer_group(GROUP)


async def test_a_closed_port_is_unavailable():
    """The service or the network may not be up yet."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    options = EventHubOptions(is_tls_on=False)
    credential = AzureNamedKeyCredential("name", "key")
    async with EventHubSource(f"127.0.0.1:{port}", "hub", credential, options=options) as source:
        with pytest.raises(SourceUnavailableError, match="Connect call failed"):
            await source.check_consumer_group(GROUP)


class Tokens:
    """An async token credential."""

    def __init__(self, error: Exception | None = None) -> None:
        self.scopes: list[str] = []
        self.error = error

    async def get_token(self, *scopes: str, **_: object) -> AccessToken:
        self.scopes += scopes
        if self.error is not None:
            raise self.error
        return AccessToken("token", int(time.time()) + 3600)

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    "credential",
    [
        AzureNamedKeyCredential("name", "key"),
        AzureSasCredential("SharedAccessSignature sr=x&sig=y&se=4000000000&skn=z"),
        Tokens(),
    ],
    ids=lambda credential: type(credential).__name__,
)
async def test_every_kind_of_credential_opens_a_receiver(shared, credential):
    """Tokens are requested for the scope of Event Hubs only."""
    source = EventHubSource(
        f"127.0.0.1:{shared.port}",
        "hub",
        credential,
        options=EventHubOptions(is_tls_on=False),
    )
    async with source:
        await source.check_consumer_group(GROUP)
        receiver = await source.open_receiver(GROUP, "1", EARLIEST)

        assert list(await receiver.receive(events_max=1, wait_max=timedelta(0))) == []

    if isinstance(credential, Tokens):
        assert set(credential.scopes) == {"https://eventhubs.azure.net//.default"}


async def test_a_credential_that_gives_no_token_is_a_configuration_error_at_the_start(shared):
    """During a run it is ``SourceUnavailableError``, because the token service may recover."""
    credential = Tokens(ClientAuthenticationError("no such tenant"))
    source = EventHubSource(
        f"127.0.0.1:{shared.port}", "hub", credential, options=EventHubOptions(is_tls_on=False)
    )
    async with source:
        with pytest.raises(SourceUnavailableError, match="no such tenant"):
            await source.open_receiver(GROUP, "0", EARLIEST)
        with pytest.raises(ConfigurationError, match="no such tenant"):
            await source.check_consumer_group(GROUP)


@pytest.mark.parametrize("content", [None, "no certificates"])
async def test_a_ca_bundle_without_certificates_is_a_configuration_error(tmp_path, content):
    """``open`` raises, before anything is received."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    credential = AzureNamedKeyCredential("name", "key")
    options = EventHubOptions(ca_bundle=str(path))
    with pytest.raises(ConfigurationError, match="ca_bundle"):
        await EventHubSource("localhost", "hub", credential, options=options).open()


async def test_using_an_unopened_source_is_a_clear_error(shared):
    """A ``RuntimeError`` says that it is not open."""
    with pytest.raises(RuntimeError, match="not open"):
        await source_on(shared).partition_ids()
