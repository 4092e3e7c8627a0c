"""AMQP over WebSockets: a second endpoint for the same hubs. It needs aiohttp."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Final

from eventproc._base.extras import needing
from eventproc._base.http.address import ListenAddress
from eventproc._base.http.guard import may_open_socket, own_names
from eventproc._base.http.server import listening
from eventproc.emulator._links.connection import WRITE_BUFFER_MAX, Connection

with needing("http"):
    from aiohttp import WSMsgType, web

PATH: Final = "/$servicebus/websocket"
SUBPROTOCOLS: Final = ("AMQPWSB10", "amqp")
"""The name that the Azure SDKs use, and that of the Go SDK's example."""

_MESSAGE_MAX: Final = 16 * 1024 * 1024


class WebSocketEndpoint:
    """An HTTP server whose WebSockets carry the bytes of AMQP connections."""

    def __init__(self, new_connection: Callable[[], Connection]) -> None:
        self._new_connection = new_connection
        self._listening = AsyncExitStack()
        self._names: frozenset[str] = frozenset()

    async def start(
        self, address: ListenAddress, ssl_context: ssl.SSLContext | None, connections_max: int
    ) -> int:
        """Listen and return the port, which the system chooses if that of *address* is 0.

        Raises:
            ConfigurationError: The address cannot be listened on.
        """
        self._names = await asyncio.to_thread(own_names, address.host)
        app = web.Application()
        for path in (PATH, f"{PATH}/"):
            app.router.add_get(path, self._serve)
        bound = await self._listening.enter_async_context(
            listening(
                address,
                app,
                "websocket_port",
                connections_max=connections_max,
                ssl_context=ssl_context,
            )
        )
        return bound.port

    async def stop(self) -> None:
        """Close the port and cut every connection."""
        await self._listening.aclose()

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        if not may_open_socket(request.headers, self._names):
            raise web.HTTPForbidden(text="Pages of other sites are refused.\n")
        socket = web.WebSocketResponse(
            protocols=SUBPROTOCOLS, max_msg_size=_MESSAGE_MAX, compress=False
        )
        await socket.prepare(request)
        transport = _SocketTransport(socket, request.transport)
        connection = self._new_connection()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        sending = asyncio.create_task(transport.send_for_ever())
        try:
            async for message in socket:
                if message.type is WSMsgType.BINARY:
                    connection.data_received(message.data)
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await sending
            connection.connection_lost(None)
        return socket


class _SocketTransport(asyncio.Transport):
    """What a connection writes to: bytes become messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse, below: asyncio.BaseTransport | None) -> None:
        super().__init__()
        self._socket = socket
        self._below = below
        self._protocol: asyncio.Protocol | None = None
        self._unsent = bytearray()
        self._has_work = asyncio.Event()
        self._is_closing = False
        self._is_paused = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Remember the connection, which is paused while the client reads slowly."""
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the limit is the connection's."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Queue bytes."""
        self._unsent += data
        self._has_work.set()
        if len(self._unsent) > WRITE_BUFFER_MAX and not self._is_paused:
            self._is_paused = True
            assert self._protocol is not None
            self._protocol.pause_writing()

    async def send_for_ever(self) -> None:
        """Send what is queued, until the connection is closed."""
        assert self._protocol is not None
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self._unsent:
                data = bytes(self._unsent)
                self._unsent.clear()
                await self._socket.send_bytes(data)
            if self._is_paused:
                self._is_paused = False
                self._protocol.resume_writing()
            if self._is_closing:
                await self._socket.close()
                return

    def is_closing(self) -> bool:
        """Whether nothing more is written."""
        return self._is_closing

    def close(self) -> None:
        """Close the WebSocket when everything is sent."""
        self._is_closing = True
        self._has_work.set()

    def abort(self) -> None:
        """Cut the TCP connection."""
        self._is_closing = True
        if isinstance(self._below, asyncio.WriteTransport):
            self._below.abort()
