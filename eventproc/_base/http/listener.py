"""Accepts the connections of a server, so many at most, whatever clients do.

Rule 1: the number of connections is limited, so a server never takes the descriptors that the rest
of its process needs. If there are too many, the one that has been idle for longest is cut.
Rule 2: without a free descriptor the server waits. asyncio would log each attempt, and try again
hundreds of times a second.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from eventproc._base.http.address import ListenAddress
from eventproc._base.logs import ConditionLogger, error_text, get_logger
from eventproc._base.tasks import end

BACKLOG: Final = 128
RETRY_S: Final = 1.0
"""How long to wait for a free descriptor."""

HANDSHAKE_S: Final = 10.0
"""How long a client may take for the handshake of TLS."""


@dataclass(eq=False, slots=True)
class _Accepted:
    """A connection, from its acceptance to the end of its socket."""

    socket: socket.socket
    task: asyncio.Task[None] | None = None
    transport: asyncio.Transport | None = None
    protocol: asyncio.BaseProtocol | None = None

    def connected(self) -> None:
        """Note that the handshake is over, however it ended."""
        self.task = None
        if self.transport is None:
            self.socket.close()

    def cut(self) -> None:
        """Close it without a word."""
        if self.transport is not None:
            self.transport.abort()
        elif self.task is not None:
            self.task.cancel()


class Listener:
    """Listens on the sockets of one address."""

    def __init__(
        self,
        new_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        connections_max: int,
        is_idle: Callable[[asyncio.BaseProtocol], bool],
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            new_protocol: Makes the protocol of a new connection.
            connections_max: The most connections at one time.
            is_idle: Whether a connection may be cut in favour of a new one.
            ssl_context: For TLS.
        """
        self._new_protocol = new_protocol
        self._connections_max = connections_max
        self._is_idle = is_idle
        self._ssl_context = ssl_context
        self._refusing: ConditionLogger
        self._bound: asyncio.Server | None = None
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._accepted: list[_Accepted] = []
        """The connections whose socket is open, oldest first."""

    async def open(self, address: ListenAddress) -> ListenAddress:
        """Listen; return the address with its port.

        Raises:
            OSError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        # asyncio resolves and binds; it would also accept, but see rule 2.
        if address.path:
            self._bound = await loop.create_unix_server(
                asyncio.Protocol, address.path, start_serving=False
            )
        else:
            self._bound = await loop.create_server(
                asyncio.Protocol, address.host, address.port, start_serving=False
            )
        bound = address
        if not address.path:
            bound = ListenAddress(address.host, self._bound.sockets[0].getsockname()[1])
        log = get_logger("eventproc.endpoints").bind(address=str(bound))
        self._refusing = ConditionLogger(log, "connections_refused", "connections_accepted")
        try:
            for each in self._bound.sockets:
                self._sockets.append(each.dup())
                self._sockets[-1].settimeout(0)
                self._sockets[-1].listen(BACKLOG)
        except OSError:
            await self.close()
            raise
        self._accepting = [loop.create_task(self._accept(each)) for each in self._sockets]
        return bound

    async def close(self) -> None:
        """Close the port. Connections that have their protocol stay."""
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            with suppress(NotImplementedError):  # The loop of Windows has no readers.
                loop.remove_reader(each.fileno())
        await asyncio.sleep(0)  # A connection that was accepted in this turn is taken in the next.
        await end(self._accepting)
        for each in self._sockets:
            each.close()
        if self._bound is not None:
            self._bound.close()
        await end([each.task for each in self._accepted if each.task is not None])
        self._sockets, self._accepting, self._bound = [], [], None

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except ConnectionError:
                continue  # The client has gone already.
            except OSError as error:
                self._refusing.note(error=error_text(error))
                await asyncio.sleep(RETRY_S)
                continue
            self._take(accepted)
            await asyncio.sleep(0)  # ``sock_accept`` does not yield while clients wait.

    def _take(self, accepted: socket.socket) -> None:
        self._accepted = [each for each in self._accepted if each.socket.fileno() >= 0]
        while len(self._accepted) >= self._connections_max:
            idle = next((each for each in self._accepted if self._may_be_cut(each)), None)
            if idle is None:
                self._refusing.note(error=f"all {self._connections_max} connections are in use")
                accepted.close()
                return
            idle.cut()
            self._accepted.remove(idle)
        self._refusing.end()
        connection = _Accepted(accepted)
        connection.task = asyncio.get_running_loop().create_task(self._connect(connection))
        # Not in a `finally` of the task: one that is cancelled before it starts has none.
        connection.task.add_done_callback(lambda _: connection.connected())
        self._accepted.append(connection)

    def _may_be_cut(self, connection: _Accepted) -> bool:
        return connection.protocol is None or self._is_idle(connection.protocol)

    async def _connect(self, connection: _Accepted) -> None:
        loop = asyncio.get_running_loop()
        has_tls = self._ssl_context is not None
        with suppress(OSError):  # The client has gone, or speaks no TLS.
            connection.transport, connection.protocol = await loop.connect_accepted_socket(
                self._new_protocol,
                connection.socket,
                ssl=self._ssl_context,
                ssl_handshake_timeout=HANDSHAKE_S if has_tls else None,
            )
