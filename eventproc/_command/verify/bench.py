"""The event hub and the container that the checks work with."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote, quote_plus

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient
from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.blob._container import BlobContainer
from eventproc._base.azure_storage.blobs import BLOBS
from eventproc._base.azure_storage.connection import account_in
from eventproc._command.arguments.address import StoreAddress
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition
from eventproc.ports import EventSource
from eventproc.sources.eventhubs import EventHubSource
from eventproc.sources.eventhubs._client import Credential, EventHubAddress, close_client
from eventproc.sources.eventhubs._direct_path.azure_internals import PartitionLink
from eventproc.testing import SourceBench
from eventproc.testing._clauses import SkippedError
from eventproc.testing._source_contract.bench import GROUP

ANSWER_MAX_S: Final = 20.0
"""How long to wait for events that must come."""

QUIET_S: Final = 0.5
"""How long nothing may come after the last event that was wanted."""


@dataclass(kw_only=True)
class Noted:
    """What a check found that no code relies on, and that differs from the emulator."""

    is_emulator: bool
    """Whether the service is one: eventproc's own, or Azurite."""

    differences: list[str] = field(default_factory=list)

    def note(self, is_as_in_emulator: object, sentence: str) -> None:
        """Keep the *sentence* for the report, unless the service answered as the emulator."""
        if not is_as_in_emulator:
            self.differences.append(sentence)

    def skip_emulator(self, sentence: str) -> None:
        """Skip the check if the service is an emulator, whose limit the *sentence* names."""
        if self.is_emulator:
            raise SkippedError(sentence)


class HubBench(SourceBench):
    """An event hub that nobody else uses, to which Azure's own producer publishes.

    Args:
        hub: Its address, opened.
        idle: How long a link is left without events.
        kafka: Makes a source over the Kafka endpoint; ``None`` if it cannot be reached.
    """

    is_exclusive = True

    def __init__(
        self,
        hub: EventHubAddress,
        *,
        idle: timedelta,
        kafka: Callable[[], EventSource] | None,
    ) -> None:
        self.hub = hub
        self.noted = Noted(is_emulator=not hub.options.is_tls_on)
        self.idle = idle
        self.kafka = kafka
        self.producer: EventHubProducerClient = hub.producer()

    def source(self, *, name: str = "", credential: Credential | None = None) -> EventHubSource:
        """Return a new source on the hub, or on another one, or with another credential."""
        hub = self.hub
        return EventHubSource(
            hub.namespace, name or hub.name, credential or hub.credential, options=hub.options
        )

    async def publish(self, partition_id: str, *bodies: bytes) -> None:
        await self.producer.send_batch([EventData(b) for b in bodies], partition_id=partition_id)

    def signature(self, lifetime: timedelta, *, key: str = "") -> AzureSasCredential:
        """Sign a token for the hub, with its own key or another one.

        Raises:
            SkippedError: The credential of the hub is no key.
        """
        named = self.hub.credential
        if not isinstance(named, AzureNamedKeyCredential):
            raise SkippedError("it needs a connection string with a key, to sign tokens")
        resource = quote_plus(f"sb://{self.hub.namespace}/{self.hub.name}")
        expiry = int(time.time() + lifetime.total_seconds())
        secret, text = key or named.named_key.key, f"{resource}\n{expiry}"
        digest = hmac.digest(secret.encode(), text.encode(), hashlib.sha256)
        signed = quote(base64.b64encode(digest), safe="")
        return AzureSasCredential(
            f"SharedAccessSignature sr={resource}&sig={signed}&se={expiry}"
            f"&skn={named.named_key.name}"
        )

    @asynccontextmanager
    async def link(
        self, position: EventPosition, owner_level: int | None
    ) -> AsyncIterator[PartitionLink]:
        """Yield a link to partition 0, which grants no credit."""
        client = self.hub.consumer(GROUP)
        try:
            link = await PartitionLink.open(client, GROUP, "0", position, owner_level=owner_level)
            try:
                yield link
            finally:
                await link.close()
        finally:
            await close_client(client)

    async def read_by_azure(
        self, partition_id: str, position: EventPosition, count: int
    ) -> list[EventData]:
        """Read events with Azure's own consumer."""
        client, events, done = self.hub.consumer(GROUP), list[EventData](), asyncio.Event()

        async def on_event(_: object, event: EventData | None) -> None:
            if event is not None:
                events.append(event)
            if len(events) >= count:
                done.set()

        receiving = asyncio.ensure_future(
            client.receive(
                on_event,
                partition_id=partition_id,
                starting_position=position.sequence_number,
                starting_position_inclusive=position.is_inclusive,
            )
        )
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                await done.wait()
        finally:
            await close_client(client)
            receiving.cancel()  # it would sleep for a load balancing interval
            await asyncio.gather(receiving, return_exceptions=True)
        return events


async def events_on(link: PartitionLink, count: int) -> Sequence[bytes]:
    """Return the encoded events of a link: *count* of them, and those that come too many."""
    events: list[bytes] = []
    while True:
        is_enough = len(events) >= count
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_S if is_enough else ANSWER_MAX_S):
                events += link.events_in(await link.listen())
                await link.attend()
                continue
        return events


class ContainerBench:
    """A container that nobody else uses, by the options that name it."""

    folder: Final = "eventproc-verify/"
    """Begins the names of blobs that no store writes."""

    def __init__(self, address: StoreAddress) -> None:
        self.address = address
        store = address.checkpoint_store()
        if not isinstance(store, BlobCheckpointStore) or "?" in address.store:
            raise ConfigurationError(
                f"--store is {address.store!r}: give blob:CONTAINER, an empty container"
            )
        self.store = store
        place: str = store._connection.place  # noqa: SLF001 - a private attribute of ours
        self.names = place.split("/")
        """Host, account and container."""

        self.noted = Noted(is_emulator="devstoreaccount1" in self.names)

    @property
    def container(self) -> BlobContainer:
        """One request for each call, by the code that the store uses; while the store is open."""
        return self.store._blobs.vendor  # noqa: SLF001 - a private attribute of ours

    def signed(self, rights: str, lifetime: timedelta) -> "ContainerBench":
        """Return the same container, opened by a token with these rights.

        Raises:
            SkippedError: The account is reached without its key.
        """
        text = self.address.storage_connection_string
        url, key = account_in(text, BLOBS) if text else ("", None)
        if not isinstance(key, AzureNamedKeyCredential):
            raise SkippedError("it needs a connection string with an account key, to sign tokens")
        signature = generate_container_sas(
            key.named_key.name,
            self.address.store.partition(":")[2],
            account_key=key.named_key.key,
            permission=ContainerSasPermissions.from_string(rights),
            expiry=datetime.now(UTC) + lifetime,
        )
        account = f"BlobEndpoint={url};SharedAccessSignature={signature}"
        return ContainerBench(replace(self.address, storage_connection_string=account))
