"""A server of asyncio in a thread of its own, which leaves no socket open."""

import asyncio
import threading
from contextlib import contextmanager

from tests.servers.listening import end_connections, stop_listening


class ThreadedServer:
    """Listens on loopback; a context manager. A subclass serves each connection in ``serve``."""

    port = 0
    """Where it listens, once it is entered."""

    def __init__(self, tls=None):
        """*tls* is the SSL context, or ``None``."""
        self._tls = tls
        self._transports = set()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    async def serve(self, reader, writer):
        """Serve a connection, which is aborted when this returns."""
        raise NotImplementedError

    def __enter__(self):
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self._call(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    async def _stop(self):
        """Abort connections until none is left, also those whose TLS is being agreed on."""
        await stop_listening(self._server)
        while asyncio.all_tasks() - {asyncio.current_task()}:
            for transport in list(self._transports):
                transport.abort()
            await asyncio.sleep(0.01)
        await end_connections(())

    async def _serve(self, reader, writer):
        with self.aborted_at_the_end(writer):
            await self.serve(reader, writer)

    @contextmanager
    def aborted_at_the_end(self, writer):
        """Abort a connection at the end of the block, or when the server stops."""
        self._transports.add(writer.transport)
        try:
            yield
        finally:
            writer.transport.abort()
            self._transports.discard(writer.transport)
