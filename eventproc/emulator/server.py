"""The emulator on a running event loop: it listens, and it can be told to misbehave."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from typing import Self, TypeVar

from eventproc.emulator.configuration import EmulatorConfiguration
from eventproc.emulator.connection import Connection
from eventproc.emulator.control import ControlEndpoint
from eventproc.emulator.faults import Faults
from eventproc.emulator.hub import Clock, Hub, Namespace, system_clock
from eventproc.emulator.incoming_link import PublishLink
from eventproc.emulator.message import StoredEvent
from eventproc.emulator.outgoing_link import DeliveryLink
from eventproc.emulator.refusal import LINK_STOLEN, RefusedError
from eventproc.errors import ConfigurationError

T = TypeVar("T")


class EmulatorServer:
    """An Event Hubs endpoint. ``async with`` starts and stops it; the log outlives a stop.

    Every method is to be called on the loop that runs it.
    """

    def __init__(self, configuration: EmulatorConfiguration, clock: Clock = system_clock) -> None:
        self.configuration = configuration
        self.clock = clock
        self.faults = Faults()
        self.connections: set[Connection] = set()
        self.namespace = Namespace(configuration, clock)
        self._control = ControlEndpoint(self)
        self._port = configuration.port
        self._health_port: int | None = None
        self._server: asyncio.Server | None = None
        self._expiry: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def open(self) -> None:
        """Start, with the health endpoint if there is to be one.

        Raises:
            ConfigurationError: A port is taken, or the host is not this machine's.
        """
        try:
            await self.start()
            if self.configuration.health_port is not None:
                self._health_port = await self._listening(
                    self._control.start(self.configuration.host, self.configuration.health_port),
                    self.configuration.health_port,
                )
        except ConfigurationError:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop for good, and let go of the files. Again does no harm."""
        await self._control.stop()
        await self.stop()
        self.namespace.close()

    async def _listening(self, opening: Awaitable[T], port: int) -> T:
        try:
            return await opening
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {self.configuration.host}:{port}: {error.strerror or error}; "
                "is another emulator running? port 0 takes any free port"
            ) from error

    async def start(self) -> None:
        """Listen; after a stop, on the same port and with the same events. Again does no harm.

        Raises:
            ConfigurationError: The port is taken, or the host is not this machine's.
        """
        if self._server is not None:
            return
        loop = asyncio.get_running_loop()
        self._server = await self._listening(
            loop.create_server(
                lambda: Connection(self), self.configuration.host, self._port, reuse_address=True
            ),
            self._port,
        )
        self._port = self._server.sockets[0].getsockname()[1]
        if self.namespace.ages:
            self._expiry = loop.create_task(self._expire_for_ever())

    async def stop(self) -> None:
        """Close the port and cut every connection; the events stay. Again does no harm."""
        if self._server is None:
            return
        self._server.close()
        if self._expiry is not None:
            self._expiry.cancel()
            with suppress(asyncio.CancelledError):
                await self._expiry
            self._expiry = None
        while self.connections:
            self.drop_connections()
            await asyncio.sleep(0)
        await self._server.wait_closed()
        self._server = None

    async def _expire_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self.namespace.shortest_wait.total_seconds())
            self.namespace.expire()

    @property
    def port(self) -> int:
        """The port it listens on; known once it has started."""
        return self._port

    @property
    def health_port(self) -> int | None:
        """The port of the health endpoint, if there is one."""
        return self._health_port

    @property
    def listens(self) -> bool:
        """Whether clients can connect."""
        return self._server is not None

    @property
    def connection_string(self) -> str:
        """What a client of the Azure SDKs connects with, for any hub."""
        return (
            f"Endpoint=sb://{_reachable(self.configuration.host)}:{self._port};"
            "SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
        )

    def connection_string_for(self, hub: str) -> str:
        """The same, with the hub named in it."""
        return f"{self.connection_string}EntityPath={self._hub(hub).name}"

    # --- what is in it ---------------------------------------------------------------------------

    def _hub(self, name: str) -> Hub:
        try:
            return self.namespace.hub(name)
        except RefusedError as error:
            raise KeyError(f"no event hub {name!r}") from error

    def events(self, hub: str, partition_id: str) -> list[StoredEvent]:
        """What a partition holds, oldest first."""
        try:
            log = self._hub(hub).partition(partition_id).log
        except RefusedError as error:
            raise KeyError(f"event hub {hub!r} has no partition {partition_id!r}") from error
        return log.read(0, len(log), log.byte_count)

    def partition_ids(self, hub: str) -> list[str]:
        """The partitions that a hub has now."""
        return [partition.partition_id for partition in self._hub(hub).partitions]

    def add_partitions(self, hub: str, count: int) -> None:
        """Let a hub grow. With a directory, configure as many from the next start on."""
        self._hub(hub).add_partitions(count)

    def expire_before(self, hub: str, partition_id: str, sequence_number: int) -> int:
        """Drop a partition's events below ``sequence_number``, as retention would; how many."""
        return self._hub(hub).partition(partition_id).drop_before(sequence_number)

    def receivers(self, hub: str, partition_id: str | None = None) -> list[DeliveryLink]:
        """The links that read a hub, or one partition of it."""
        links = self._links(self._hub(hub).name, partition_id)
        return [link for _, link in links if isinstance(link, DeliveryLink)]

    def _links(
        self, hub_name: str, partition_id: str | None
    ) -> Iterator[tuple[Connection, DeliveryLink | PublishLink]]:
        for connection in tuple(self.connections):
            for session in connection.sessions:
                for link in session.links:
                    if not isinstance(link, DeliveryLink | PublishLink):
                        continue
                    if link.is_at(hub_name, partition_id):
                        yield connection, link

    # --- faults that strike at once; those that last are in ``faults`` ----------------------------

    def drop_connections(self, hub: str | None = None, partition_id: str | None = None) -> int:
        """Cut connections without a word: all, or those with a link to a hub or partition."""
        if hub is None:
            dropped = set(self.connections)
        else:
            dropped = {found for found, _ in self._links(self._hub(hub).name, partition_id)}
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def clear_faults(self) -> None:
        """Behave again: what was held back or delayed goes out now."""
        self.faults.clear()
        for connection in tuple(self.connections):
            connection.catch_up()

    def displace_receivers(self, hub: str, partition_id: str | None = None) -> int:
        """End receivers as if others with a higher epoch had come; how many."""
        receivers = self.receivers(hub, partition_id)
        for receiver in receivers:
            receiver.refuse(
                RefusedError(
                    LINK_STOLEN,
                    "New receiver 'nil' with higher epoch is created hence current receiver "
                    f"'{receiver.receiver_name}' with epoch '{receiver.epoch}' is getting "
                    "disconnected. If you are recreating the receiver, make sure a higher epoch "
                    "is used.",
                )
            )
        return len(receivers)


def _reachable(host: str) -> str:
    """How a client on this machine names the host that we listen on."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104  # compared with, not bound to
        return "localhost"
    return f"[{host}]" if ":" in host else host
