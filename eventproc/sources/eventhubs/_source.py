"""Azure Event Hubs as an ``EventSource``."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final, Self, TypeVar

from eventproc._base.logs import get_logger
from eventproc._base.settings import SECRET, checked
from eventproc._base.tasks import cancellation_kept
from eventproc.errors import (
    ConfigurationError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import EventPosition, PartitionProperties
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.eventhubs import _client as azure_client
from eventproc.sources.eventhubs._direct_path import azure_internals
from eventproc.sources.eventhubs._direct_path.path import DirectPath
from eventproc.sources.eventhubs._direct_path.receiver import EventHubReceiver
from eventproc.sources.eventhubs._errors import OffsetRefusedError, UnexpectedShapeError
from eventproc.sources.eventhubs._options import EventHubOptions, ReceivePath
from eventproc.sources.eventhubs._public_path import PublicPath, PublicReceiver

_ANY_GROUP = "$Default"
"""The consumer group of the client for management requests. Such requests belong to no group, but
a client needs one; this one always exists."""

ASKED_AT_ONCE: Final = 32
"""Most partitions that are asked for in one request's time: one after the other on a connection."""

T = TypeVar("T")


ReceivePathClient = DirectPath | PublicPath
"""One of the two ways to use Azure's client; both classes have the same methods."""


class EventHubSource(EventSource):
    """Reads events from one event hub. It connects at the first request.

    Each receiver has a connection of its own, as in Azure's client, so that a broken connection
    affects one partition only.

    Args:
        fully_qualified_namespace: for example ``contoso.servicebus.windows.net``.
        eventhub_name: the event hub's name.
        credential: a token credential (``azure.identity`` or ``azure.identity.aio``), or a named
            key or shared access signature from ``azure.core.credentials``. The source does not
            close it. It may be given to a store as well.
        options: how to connect and read.

    Raises:
        ConfigurationError: the namespace or the event hub's name is not valid.
    """

    @checked
    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        credential: Annotated[azure_client.Credential, SECRET],
        *,
        options: EventHubOptions | None = None,
    ) -> None:
        self._hub = azure_client.EventHubAddress(
            fully_qualified_namespace, eventhub_name, credential, options
        )
        self._clients: dict[str, azure_client.Client] = {}
        self._receivers: list[EventHubReceiver | PublicReceiver] = []
        is_direct = self._hub.options.receive_path is ReceivePath.DIRECT
        self._path: ReceivePathClient = (DirectPath if is_direct else PublicPath)(self._hub.options)
        self._log = get_logger("eventproc.sources.eventhubs", eventhub_name=self._hub.name)
        self._query_lock = asyncio.Lock()  # Renewed by ``open``: it belongs to a loop.
        self._created_at: datetime | None = None
        self._refused_offset_partitions: set[str] = set()
        """Partitions with a logged ``offset_refused`` warning."""

    @classmethod
    @checked
    def from_connection_string(
        cls,
        conn_str: Annotated[str, SECRET],
        *,
        eventhub_name: str | None = None,
        options: EventHubOptions | None = None,
    ) -> Self:
        """Build a source from a connection string of the namespace or of the event hub.

        Args:
            conn_str: as the portal shows it, or an emulator's with
                ``UseDevelopmentEmulator=true``; or where it is: ``file:PATH``, in one line, or
                ``env:NAME``.
            eventhub_name: needed unless the string ends in ``EntityPath=...``.
            options: how to connect and read.

        Raises:
            ConfigurationError: the string cannot work; the message does not repeat the key.
        """
        address, options = azure_client.parse_address(conn_str, eventhub_name, options)
        return cls(*address, options=options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._hub.namespace!r}, {self._hub.name!r})"

    @property
    def fully_qualified_namespace(self) -> str:
        return self._hub.namespace

    @property
    def eventhub_name(self) -> str:
        return self._hub.name

    @property
    def descriptors_per_partition(self) -> int:
        return 1

    async def open(self) -> None:
        if self._hub.is_open:
            return
        self._query_lock = asyncio.Lock()
        await self._hub.open()
        if isinstance(self._path, DirectPath):
            try:
                azure_internals.check(self._client(_ANY_GROUP))
            except UnexpectedShapeError as error:
                self._use_public_path(error)

    async def close(self) -> None:
        self._hub.close()
        await asyncio.gather(*(receiver.close() for receiver in self._receivers))
        self._receivers.clear()
        for client in self._clients.values():
            await azure_client.close_client(client)
        self._clients.clear()

    async def check_consumer_group(self, name: str) -> None:
        what = f"consumer group {name!r} of {self._hub} at {self._hub.namespace}"
        try:
            ids = await self.partition_ids()
            # Without an owner level, so that it does not displace the receivers of a running group.
            async with self._answered_within(f"{what} cannot be checked"):
                await self._with_path(
                    lambda path: path.check_readable(self._client_for(path, name), name, ids[0])
                )
        except ReceiverDisplacedError:
            return  # an exclusive receiver reads the partition, so the group can be read
        except (SourceRejectedError, SuspectSettingError) as error:
            explained = error.with_remedy(
                ". Check the namespace, the names of event hub and consumer group, and that the "
                "credential may listen"
            )
            raise ConfigurationError(f"{what} cannot be read: {explained}") from error

    async def partition_ids(self) -> Sequence[str]:
        async with (
            self._query_lock,
            self._answered_within(f"requesting the partitions of {self!r} failed"),
        ):
            hub = await self._with_path(lambda path: path.ask_hub(self._client(_ANY_GROUP)))
        self._created_at = hub.created_at
        return hub.partition_ids

    @property
    def created_at(self) -> datetime | None:
        return self._created_at

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        (properties,) = await self.properties_of([partition_id])
        return properties

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        found: list[PartitionProperties] = []
        for begin in range(0, len(partition_ids), ASKED_AT_ONCE):
            found += await self._properties_of(partition_ids[begin : begin + ASKED_AT_ONCE])
        return found

    async def _properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        partitions = ", ".join(map(repr, partition_ids))
        what = f"requesting properties of partition {partitions} from {self!r} failed"
        async with self._query_lock, self._answered_within(what):
            return await self._with_path(
                lambda path: path.ask_partitions(self._client(_ANY_GROUP), partition_ids)
            )

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        async with self._answered_within(f"opening partition {partition_id!r} of {self!r} failed"):
            try:
                receiver = await self._open_at(consumer_group, partition_id, position)
            except OffsetRefusedError as error:
                numbered = self._without_offset(partition_id, position, error)
                receiver = await self._open_at(consumer_group, partition_id, numbered)
        self._receivers = [known for known in self._receivers if not known.is_over]
        self._receivers.append(receiver)
        return receiver

    async def _open_at(
        self, group: str, partition_id: str, position: EventPosition
    ) -> EventHubReceiver | PublicReceiver:
        return await self._with_path(
            lambda path: path.open_receiver(
                self._client_for(path, group), group, partition_id, position
            )
        )

    def _without_offset(
        self, partition_id: str, position: EventPosition, error: OffsetRefusedError
    ) -> EventPosition:
        """Return the same position by sequence number, which geo-replication does not change.

        Raises:
            SourceRejectedError: the position has no sequence number.
        """
        number = position.sequence_number
        if number is None:
            raise SourceRejectedError(
                f"{error}. The offset {position.offset!r} is from before geo-replication was "
                "switched on, and the position has no sequence number: write the sequence number "
                "with `eventproc checkpoints set`, or choose a time with "
                "`eventproc checkpoints reset --to`"
            ) from error
        # One warning for each partition: the offset is refused again at each opening until a
        # checkpoint has an offset of a newer event.
        log = (
            self._log.debug
            if partition_id in self._refused_offset_partitions
            else self._log.warning
        )
        self._refused_offset_partitions.add(partition_id)
        log(
            "offset_refused",
            partition_id=partition_id,
            offset=position.offset,
            sequence_number=number,
            error=str(error),
        )
        return replace(position, offset=None)

    async def _with_path(self, work: Callable[[ReceivePathClient], Awaitable[T]]) -> T:
        """Call *work* with the receive path; switch to the public path if the direct one fails."""
        try:
            return await work(self._path)
        except UnexpectedShapeError as error:
            self._use_public_path(error)
            return await work(self._path)

    def _use_public_path(self, error: UnexpectedShapeError) -> None:
        if not isinstance(self._path, PublicPath):
            self._path = PublicPath(self._hub.options)
            self._log.warning("direct_receive_unavailable", error=str(error))

    def _client_for(self, path: ReceivePathClient, group: str) -> azure_client.Client:
        return self._hub.consumer(group) if path.needs_own_client else self._client(group)

    def _client(self, group: str) -> azure_client.Client:
        """Return the shared client of the group."""
        if group not in self._clients:
            self._clients[group] = self._hub.consumer(group)
        return self._clients[group]

    @asynccontextmanager
    async def _answered_within(self, what: str) -> AsyncIterator[None]:
        """Raise ``SourceUnavailableError`` after ``connect_timeout``."""
        seconds = self._hub.options.connect_timeout.total_seconds()
        try:
            with cancellation_kept():
                async with asyncio.timeout(seconds):
                    yield
        except TimeoutError as error:
            raise SourceUnavailableError(f"{what}: no answer within {seconds:g} s") from error
