"""Azure Event Hubs as an ``EventSource``."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Self

from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition, PartitionProperties
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.eventhubs import vendor
from eventproc.sources.eventhubs.connection_string import (
    check_hub_name,
    check_namespace,
    parse_connection_string,
)
from eventproc.sources.eventhubs.event import Message
from eventproc.sources.eventhubs.options import EventHubOptions
from eventproc.sources.eventhubs.receiver import EventHubReceiver
from eventproc.sources.eventhubs.refusal import SuspectSettingError

_ANY_GROUP = "$Default"
"""Questions about the hub itself belong to no group, but a client does; this one always exists."""

OWNER_LEVEL = 0
"""Of an exclusive receiver, as Azure's own processors have it: the newer of two equals wins. A
higher level would lock them out of a shared group, a lower one could not read there."""


class EventHubSource(EventSource):
    """Events from one event hub. Nothing is connected before it is asked something.

    Each receiver has a connection of its own, as in Azure's client, so that a broken one disturbs
    no other partition.

    Args:
        fully_qualified_namespace: for example ``contoso.servicebus.windows.net``.
        eventhub_name: the event hub's name.
        credential: an async token credential (``azure.identity.aio``), or a named key or shared
            access signature from ``azure.core.credentials``. Closing it is the caller's business.
        options: how to connect and read.

    Raises:
        ConfigurationError: a name cannot be one.
    """

    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        credential: vendor.Credential,
        *,
        options: EventHubOptions | None = None,
    ) -> None:
        self._namespace = check_namespace(fully_qualified_namespace)
        self._hub = check_hub_name(eventhub_name)
        self._credential = credential
        self._options = options or EventHubOptions()
        self._ssl_context: ssl.SSLContext | None = None
        self._clients: dict[str, vendor.Client] = {}
        self._receivers: list[EventHubReceiver] = []
        self._turn_to_ask = asyncio.Lock()

    @classmethod
    def from_connection_string(
        cls,
        conn_str: str,
        *,
        eventhub_name: str | None = None,
        options: EventHubOptions | None = None,
    ) -> Self:
        """Build a source from a connection string of the namespace or of the event hub.

        Args:
            conn_str: as the portal shows it, or an emulator's with
                ``UseDevelopmentEmulator=true``.
            eventhub_name: needed unless the string ends in ``EntityPath=...``.
            options: how to connect and read.

        Raises:
            ConfigurationError: the string cannot work; the message does not repeat the key.
        """
        parsed = parse_connection_string(conn_str, eventhub_name)
        options = options or EventHubOptions()
        return cls(
            parsed.fully_qualified_namespace,
            parsed.eventhub_name,
            vendor.make_credential(parsed),
            options=replace(options, is_tls_on=False) if parsed.is_emulator else options,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._namespace!r}, {self._hub!r})"

    @property
    def fully_qualified_namespace(self) -> str:
        return self._namespace

    @property
    def eventhub_name(self) -> str:
        return self._hub

    async def open(self) -> None:
        if self._ssl_context is None:
            self._ssl_context = await asyncio.to_thread(vendor.make_ssl_context, self._options)

    async def close(self) -> None:
        self._ssl_context = None
        await asyncio.gather(*(receiver.close() for receiver in self._receivers))
        self._receivers.clear()
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    async def check_consumer_group(self, name: str) -> None:
        what = f"consumer group {name!r} of event hub {self._hub!r} at {self._namespace}"
        try:
            ids = await self.partition_ids()
            # Without an owner level: it displaces nobody, while a fleet may be at work.
            async with self._answered_within(f"{what} cannot be checked"):
                link = await vendor.PartitionLink.open(
                    self._client(name),
                    name,
                    ids[0],
                    EventPosition.latest(),
                    _drop,
                    owner_level=None,
                )
            await link.close()
        except ReceiverDisplacedError:
            return  # refused for the sake of those who read there already: so it can be read
        except (SourceRejectedError, SuspectSettingError) as error:
            raise ConfigurationError(
                f"{what} cannot be read. {error}. Check the namespace, the names of event hub and "
                "consumer group, and that the credential may listen"
            ) from error

    async def partition_ids(self) -> Sequence[str]:
        async with (
            self._turn_to_ask,
            self._answered_within(f"{self!r} did not tell its partitions"),
        ):
            return await vendor.ask_partition_ids(self._client(_ANY_GROUP))

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        (properties,) = await self.properties_of([partition_id])
        return properties

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        what = f"{self!r} did not tell of partition {', '.join(map(repr, partition_ids))}"
        async with self._turn_to_ask, self._answered_within(what):
            return await vendor.ask_partitions(self._client(_ANY_GROUP), partition_ids)

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        client = self._client(consumer_group)

        async def open_link(on_message: Callable[[Message], None]) -> vendor.PartitionLink:
            return await vendor.PartitionLink.open(
                client,
                consumer_group,
                partition_id,
                position,
                on_message,
                owner_level=OWNER_LEVEL if self._options.is_exclusive else None,
            )

        async with self._answered_within(f"{self!r} did not open partition {partition_id!r}"):
            receiver = await EventHubReceiver.open(open_link, room=self._options.prefetch)
        self._receivers = [known for known in self._receivers if not known.is_over]
        self._receivers.append(receiver)
        return receiver

    def _client(self, group: str) -> vendor.Client:
        """The client of the group; building one connects nothing."""
        if self._ssl_context is None:
            raise RuntimeError("the source is not open: use `async with`, or call open() first")
        if group not in self._clients:
            self._clients[group] = vendor.make_client(
                self._namespace,
                self._hub,
                group,
                self._credential,
                self._options,
                ssl_context=self._ssl_context,
            )
        return self._clients[group]

    @asynccontextmanager
    async def _answered_within(self, what: str) -> AsyncIterator[None]:
        """Give up with ``SourceUnavailableError`` when ``connect_timeout`` is over."""
        seconds = self._options.connect_timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise SourceUnavailableError(f"{what}: no answer within {seconds:g} s") from error


def _drop(message: Message) -> None:
    """Nothing comes: no credit was granted."""
