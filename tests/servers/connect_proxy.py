"""An HTTP proxy that takes TLS off, for clients that reach nothing but port 443 with TLS."""

import asyncio
from contextlib import suppress
from ssl import SSLContext

from tests.servers.lossy_proxy import LossyProxy


class ConnectProxy(LossyProxy):
    """Connects every client to one server on this machine, whatever host and port it asks for."""

    def __init__(self, port: int, tls: SSLContext) -> None:
        """*port* is where the server listens on loopback; *tls* is what clients are shown."""
        super().__init__(port)
        self._tls = tls

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.drain()
            await writer.start_tls(self._tls)
            await super()._serve(reader, writer)
