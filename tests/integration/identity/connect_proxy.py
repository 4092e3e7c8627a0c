"""A small HTTP proxy that forwards with CONNECT, as those of companies do."""

import asyncio
import base64
import threading
from contextlib import suppress

from eventproc.concurrency.listener import stop_listening


class ConnectProxy:
    """An HTTP proxy in a thread of its own; a context manager.

    Args:
        user: ``name:password`` that it wants, or ``None``.
        status: What it answers every request with, instead of forwarding it.
    """

    def __init__(self, user=None, status=None):
        self.user, self.status = user, status
        self.targets = []
        """What it was asked to connect to, ``host:port``."""

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _end(self):
        await stop_listening(self._server)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader, writer):
        try:
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
            host, _, port = target.rpartition(":")
            there = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                await asyncio.wait(
                    [
                        asyncio.create_task(pump(reader, there[1])),
                        asyncio.create_task(pump(there[0], writer)),
                    ],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                there[1].transport.abort()
        finally:
            writer.transport.abort()


async def pump(reader, writer):
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
