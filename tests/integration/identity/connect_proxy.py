"""A small HTTP proxy that forwards with CONNECT, as those of companies do."""

import asyncio
import base64
from contextlib import suppress

from .threaded_server import ThreadedServer


class ConnectProxy(ThreadedServer):
    """An HTTP proxy in a thread of its own.

    Args:
        user: ``name:password`` that it wants, or ``None``.
        status: What it answers every request with, instead of forwarding it.
    """

    def __init__(self, user=None, status=None):
        super().__init__()
        self.user, self.status = user, status
        self.targets = []
        """What it was asked to connect to, ``host:port``."""

    async def serve(self, reader, writer):
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = head[0].split(" ")
            assert method == "CONNECT"
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            status = self.status
            if self.user is not None:
                wanted = "Basic " + base64.b64encode(self.user.encode()).decode()
                if headers.get("Proxy-Authorization") != wanted:
                    status = 407
            if status is not None:
                writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                return
            self.targets.append(target)
            await self._connect(reader, writer, *target.rpartition(":")[::2])

    async def _connect(self, reader, writer, host, port):
        answers, server = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with self.aborted_at_the_end(server):
            pumps = [
                asyncio.create_task(pump(reader, server)),
                asyncio.create_task(pump(answers, writer)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)


async def pump(reader, writer):
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
