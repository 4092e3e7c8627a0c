"""The emulator on a running event loop: the listening server, its content and its faults."""

import asyncio
import ssl
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from eventproc._base.http.address import ListenAddress
from eventproc._base.http.listener import Listener
from eventproc.emulator._amqp.message import StoredEvent
from eventproc.emulator._amqp.refusal import RefusedError, epoch_taken_over
from eventproc.emulator._faults import Faults
from eventproc.emulator._hub.configuration import EmulatorConfiguration
from eventproc.emulator._hub.hub import Clock, Hub, Namespace, Partition, system_clock
from eventproc.emulator._links.connection import Connection
from eventproc.emulator._links.incoming_link import PublishLink
from eventproc.emulator._links.outgoing_link import DeliveryLink
from eventproc.errors import ConfigurationError

if TYPE_CHECKING:
    from eventproc.emulator._capture import CaptureWriter
    from eventproc.emulator._websocket import WebSocketEndpoint

T = TypeVar("T")

CONNECTIONS_MAX: Final = 5_000
"""The service's value for a namespace. One that is not open yet is cut in favour of a new one."""


class AmqpServer:
    """An Event Hubs endpoint. Events survive ``stop``.

    Call every method on the loop that runs the server.
    """

    def __init__(self, configuration: EmulatorConfiguration, clock: Clock = system_clock) -> None:
        self.configuration = configuration
        self.clock = clock
        self.faults = Faults()
        self.connections: set[Connection] = set()
        self.namespace = Namespace(configuration, clock)
        self._port = configuration.port
        self._websocket_port = configuration.websocket_port
        self._websockets: WebSocketEndpoint | None = None
        self._listener: Listener | None = None
        self._expiry: asyncio.Task[None] | None = None
        self._capture: CaptureWriter | None = None
        self._capturing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen; after a stop, on the same port and with the same events. Repeating is harmless.

        Raises:
            ConfigurationError: A port is taken, the host is not this machine's, or the certificate
                cannot be used.
        """
        if self._listener is not None:
            return
        loop = asyncio.get_running_loop()
        host, context = self.configuration.host, self._ssl_context()
        listener = Listener(
            lambda: Connection(self),
            connections_max=CONNECTIONS_MAX,
            is_idle=lambda connection: (
                not (isinstance(connection, Connection) and connection.is_open)
            ),
            ssl_context=context,
        )
        address = ListenAddress(host, self._port)
        self._port = (await listening(listener.open(address), host, self._port)).port
        self._listener = listener
        await self._start_websockets(host, context)
        if self.namespace.ages:
            self._expiry = loop.create_task(self._expire_for_ever())
        self._start_capture()

    async def stop(self) -> None:
        """Close the port and cut every connection; the events stay. Repeating is harmless."""
        if self._listener is None:
            return
        await self._listener.close()
        for task in (self._expiry, self._capturing):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._expiry = self._capturing = None
        while self.connections:
            self.drop_connections()
            await asyncio.sleep(0)
        if self._websockets is not None:
            await self._websockets.stop()
            self._websockets = None
        if self._capture is not None:
            await self._capture.write(only_due=False)
        self._listener = None

    def _ssl_context(self) -> ssl.SSLContext | None:
        certificate, key = self.configuration.certificate, self.configuration.key
        if certificate is None or key is None:
            return None
        return server_context(certificate, key)

    async def _start_websockets(self, host: str, context: ssl.SSLContext | None) -> None:
        if self._websocket_port is None:
            return
        from eventproc.emulator._websocket import WebSocketEndpoint  # noqa: PLC0415 - an extra

        self._websockets = WebSocketEndpoint(lambda: Connection(self))
        self._websocket_port = await self._websockets.start(
            ListenAddress(host, self._websocket_port), context, CONNECTIONS_MAX
        )

    def _start_capture(self) -> None:
        wanted = self.configuration.capture
        if wanted is None:
            return
        from eventproc.emulator._capture import CaptureWriter  # noqa: PLC0415 - an extra

        if self._capture is None:
            host = _reachable(self.configuration.host)
            self._capture = CaptureWriter(wanted, self.namespace, host, self.clock)
        self._capturing = asyncio.get_running_loop().create_task(self._capture.run())

    async def _expire_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self.namespace.shortest_wait.total_seconds())
            self.namespace.expire()

    @property
    def port(self) -> int:
        """The port that it listens on; known once it has started."""
        return self._port

    @property
    def websocket_port(self) -> int | None:
        """The port for AMQP over WebSockets, if there is one."""
        return self._websocket_port

    @property
    def listens(self) -> bool:
        """Whether clients can connect."""
        return self._listener is not None

    @property
    def endpoint(self) -> str:
        """The address that clients take as a custom endpoint: ``sb://HOST:PORT``."""
        return f"sb://{_reachable(self.configuration.host)}:{self._port}"

    @property
    def connection_string(self) -> str:
        """The connection string for clients of the Azure SDKs, without a hub.

        With TLS it has no port, because clients honour one only without TLS: give them the port
        as a custom endpoint (``endpoint``).
        """
        host = _reachable(self.configuration.host)
        key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
        if self.configuration.certificate is not None:
            return f"Endpoint=sb://{host}/;{key}"
        return f"Endpoint=sb://{host}:{self._port};{key}UseDevelopmentEmulator=true;"

    def connection_string_for(self, hub: str) -> str:
        """Return the connection string with the hub's name as ``EntityPath``."""
        return f"{self.connection_string}EntityPath={self._hub(hub).name}"

    # --- content ---------------------------------------------------------------------------------

    def _hub(self, name: str) -> Hub:
        try:
            return self.namespace.hub(name)
        except RefusedError as error:
            raise KeyError(f"no event hub {name!r}") from error

    def _partition(self, hub: str, partition_id: str) -> Partition:
        try:
            return self._hub(hub).partition(partition_id)
        except RefusedError as error:
            raise KeyError(f"event hub {hub!r} has no partition {partition_id!r}") from error

    def _check_place(self, hub: str | None, partition_id: str | None) -> None:
        """Raise ``KeyError`` if the hub or the partition of a fault does not exist."""
        if hub is None and partition_id is not None:
            raise KeyError(f"partition {partition_id!r} of which event hub? Give the hub, too")
        if hub is not None and partition_id is None:
            self._hub(hub)
        if hub is not None and partition_id is not None:
            self._partition(hub, partition_id)

    def events(self, hub: str, partition_id: str) -> list[StoredEvent]:
        """Return the events of a partition, oldest first."""
        log = self._partition(hub, partition_id).log
        return log.read(0, len(log), log.byte_count)

    def partition_ids(self, hub: str) -> list[str]:
        """Return the ids of a hub's partitions."""
        return [partition.partition_id for partition in self._hub(hub).partitions]

    def add_partitions(self, hub: str, count: int) -> None:
        """Add partitions to a hub. With a directory, configure the new count for the next start.

        Raises:
            ConfigurationError: The hub would have more partitions than allowed.
        """
        self._hub(hub).add_partitions(count)

    def recreate_hub(self, hub: str) -> None:
        """Delete a hub, and create one of the same name and with as many partitions."""
        for partition in self._hub(hub).partitions:
            partition.recreate()

    def expire_before(self, hub: str, partition_id: str, sequence_number: int) -> int:
        """Drop events below ``sequence_number``, as retention would; return how many."""
        return self._partition(hub, partition_id).drop_before(sequence_number)

    def receiver_count(self, hub: str, partition_id: str | None = None) -> int:
        """Return how many receivers read a hub, or one partition of it."""
        return len(self._receivers(hub, partition_id))

    def _receivers(self, hub: str, partition_id: str | None) -> list[DeliveryLink]:
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

    # --- faults that happen once; those with a duration are in ``faults`` ------------------------

    def drop_connections(self, hub: str | None = None, partition_id: str | None = None) -> int:
        """Abort connections: all, or those with a link to a hub or partition; return how many."""
        self._check_place(hub, partition_id)
        if hub is None:
            dropped = set(self.connections)
        else:
            dropped = {found for found, _ in self._links(self._hub(hub).name, partition_id)}
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def delay_deliveries(
        self, delay: timedelta, hub: str | None = None, partition_id: str | None = None
    ) -> None:
        """Delay each delivery of one partition, of one hub, or of all. Zero ends it."""
        self._check_place(hub, partition_id)
        self.faults.delay_deliveries(delay, hub, partition_id)

    def clear_faults(self) -> None:
        """End every fault; output that was held back or delayed is sent now."""
        self.faults.clear()
        for connection in tuple(self.connections):
            connection.catch_up()

    def displace_receivers(self, hub: str, partition_id: str | None = None) -> int:
        """End receivers as if others with a higher epoch had connected; return how many."""
        self._check_place(hub, partition_id)
        receivers = self._receivers(hub, partition_id)
        for receiver in receivers:
            epoch = receiver.epoch
            higher = 0 if epoch is None else epoch + 1
            receiver.refuse(epoch_taken_over(receiver.receiver_name, epoch, "nil", higher))
        return len(receivers)


async def listening(opening: Awaitable[T], host: str, port: int) -> T:
    """Await what opens a port of this machine.

    Raises:
        ConfigurationError: The port is taken, or the host is not this machine's.
    """
    try:
        return await opening
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; "
            "is another emulator running? Port 0 (`--port 0`) takes any free port"
        ) from error


def _reachable(host: str) -> str:
    """Return the name by which a client on this machine reaches the host that we listen on."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104  # compared with, not bound to
        return "localhost"
    return f"[{host}]" if ":" in host else host


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return TLS for a server.

    Raises:
        ConfigurationError: A file cannot be read, is not in PEM, or the two do not belong together.
    """
    for what, path in (("certificate", certificate), ("key", key)):
        try:
            path.read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"the {what} {str(path)!r} cannot be read: {error.strerror}"
            ) from error
    asked: list[bool] = []

    def password() -> str:
        asked.append(True)  # Without this function OpenSSL would ask on the terminal.
        return ""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        raise ConfigurationError(
            _reason(certificate, key, error, is_encrypted=bool(asked))
        ) from error
    return context


def _reason(certificate: Path, key: Path, error: ssl.SSLError, *, is_encrypted: bool) -> str:
    if is_encrypted:
        return f"the key {str(key)!r} is encrypted: give one without a passphrase"
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the key {str(key)!r} does not belong to the certificate {str(certificate)!r}"
    for what, path, words in (
        ("certificate", certificate, b"-----BEGIN CERTIFICATE-----"),
        ("key", key, b"PRIVATE KEY-----"),
    ):
        if words not in path.read_bytes():
            return f"the {what} {str(path)!r} is not in PEM: it has no line {words.decode()!r}"
    return (
        f"the certificate {str(certificate)!r} with the key {str(key)!r} cannot be used: "
        f"{error.reason or error}"
    )
