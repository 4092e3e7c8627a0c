"""Azure Event Hubs as an ``EventSource``."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import ClassVar, Protocol, Self, TypeVar

from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.logs import get_logger
from eventproc.models import EventPosition, PartitionProperties
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.connection_string import (
    check_hub_name,
    check_namespace,
    parse_connection_string,
)
from eventproc.sources.eventhubs import inside, vendor
from eventproc.sources.eventhubs.direct import DirectWay
from eventproc.sources.eventhubs.options import EventHubOptions, ReceivePath
from eventproc.sources.eventhubs.promised import PromisedReceiver, PromisedWay
from eventproc.sources.eventhubs.receiver import EventHubReceiver
from eventproc.sources.eventhubs.refusal import SuspectSettingError, UnexpectedShapeError

_ANY_GROUP = "$Default"
"""Questions about the hub itself belong to no group, but a client does; this one always exists."""

T = TypeVar("T")


class Way(Protocol):
    """How to get something out of Azure's client."""

    needs_own_client: ClassVar[bool]
    """Whether each receiver has a client for itself, and closes it."""

    async def ask_partition_ids(self, client: vendor.Client) -> Sequence[str]:
        """Ask the service which partitions the hub has."""

    async def ask_partitions(
        self, client: vendor.Client, partition_ids: Sequence[str]
    ) -> Sequence[PartitionProperties]:
        """Ask the service where partitions begin and end."""

    async def open_receiver(
        self, client: vendor.Client, group: str, partition_id: str, position: EventPosition
    ) -> "EventHubReceiver | PromisedReceiver":
        """Begin to receive."""

    async def check_readable(self, client: vendor.Client, group: str, partition_id: str) -> None:
        """Raise what the service has against reading; it displaces nobody."""


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
        self._receivers: list[EventHubReceiver | PromisedReceiver] = []
        is_direct = self._options.receive_path is ReceivePath.DIRECT
        self._way: Way = (DirectWay if is_direct else PromisedWay)(self._options)
        self._log = get_logger("eventproc.sources.eventhubs", eventhub_name=self._hub)
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
        if self._ssl_context is not None:
            return
        self._ssl_context = await asyncio.to_thread(vendor.make_ssl_context, self._options)
        if isinstance(self._way, DirectWay):
            try:
                inside.check(self._client(_ANY_GROUP))
            except UnexpectedShapeError as error:
                self._leave_direct_way(error)

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
                await self._by(
                    lambda way: way.check_readable(self._client_for(way, name), name, ids[0])
                )
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
            return await self._by(lambda way: way.ask_partition_ids(self._client(_ANY_GROUP)))

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        (properties,) = await self.properties_of([partition_id])
        return properties

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        what = f"{self!r} did not tell of partition {', '.join(map(repr, partition_ids))}"
        async with self._turn_to_ask, self._answered_within(what):
            return await self._by(
                lambda way: way.ask_partitions(self._client(_ANY_GROUP), partition_ids)
            )

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        async with self._answered_within(f"{self!r} did not open partition {partition_id!r}"):
            receiver = await self._by(
                lambda way: way.open_receiver(
                    self._client_for(way, consumer_group), consumer_group, partition_id, position
                )
            )
        self._receivers = [known for known in self._receivers if not known.is_over]
        self._receivers.append(receiver)
        return receiver

    async def _by(self, work: Callable[[Way], Awaitable[T]]) -> T:
        """Do it one way; from the first time on that the direct one does not exist, the other."""
        try:
            return await work(self._way)
        except UnexpectedShapeError as error:
            self._leave_direct_way(error)
            return await work(self._way)

    def _leave_direct_way(self, error: UnexpectedShapeError) -> None:
        if not isinstance(self._way, PromisedWay):
            self._way = PromisedWay(self._options)
            self._log.warning("direct_receive_unavailable", error=str(error))

    def _client_for(self, way: Way, group: str) -> vendor.Client:
        return self._new_client(group) if way.needs_own_client else self._client(group)

    def _client(self, group: str) -> vendor.Client:
        """The client of the group."""
        if group not in self._clients:
            self._clients[group] = self._new_client(group)
        return self._clients[group]

    def _new_client(self, group: str) -> vendor.Client:
        """Build a client, which connects nothing."""
        if self._ssl_context is None:
            raise RuntimeError("the source is not open: use `async with`, or call open() first")
        return vendor.make_client(
            self._namespace,
            self._hub,
            group,
            self._credential,
            self._options,
            ssl_context=self._ssl_context,
        )

    @asynccontextmanager
    async def _answered_within(self, what: str) -> AsyncIterator[None]:
        """Give up with ``SourceUnavailableError`` when ``connect_timeout`` is over."""
        seconds = self._options.connect_timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise SourceUnavailableError(f"{what}: no answer within {seconds:g} s") from error
