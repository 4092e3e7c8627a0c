"""A TCP proxy in front of a store, which forwards requests and can lose the answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from eventproc._base.resource import AsyncResource
from tests.servers.listening import end_connections, stop_listening


class LossyProxy(AsyncResource):
    """Forwards bytes to and from a server on this machine, and loses answers on request.

    ``lose_answers`` can be passed to ``check_checkpoint_store``.

    An answer is lost when its first bytes arrive from the server, so the request was carried out.
    Then the proxy aborts both connections.
    """

    def __init__(self, server_port: int, port: int = 0) -> None:
        """Forward to *server_port* of loopback, and listen on *port*, by default a free one."""
        self._server_port = server_port
        self._silenced = 0
        self._answers_to_lose: int | None = 0
        self._serving: set[asyncio.Task[None]] = set()
        self.lost = 0
        """Number of answers lost so far."""

        self.port = port
        """The port for clients, once the proxy is open."""

    async def open(self) -> None:
        """Listen on ``self.port``."""
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Abort every connection and stop listening."""
        await stop_listening(self._listener)
        await end_connections(self._serving)

    @asynccontextmanager
    async def lose_answers(self, count: int | None) -> AsyncIterator[None]:
        """Lose the next *count* answers, or all of them, while the block lasts."""
        lost_before = self.lost
        self._answers_to_lose = count
        try:
            yield
        finally:
            self._answers_to_lose = 0
        # A test of lost answers proves nothing if no answer was lost.
        if self.lost - lost_before < (count or 1):
            raise AssertionError("no answer was lost: no request went through the proxy")

    def silence(self) -> None:
        """Swallow what comes on the connections that there are; they stay open."""
        self._silenced += 1

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            upstream = await asyncio.open_connection("127.0.0.1", self._server_port)
            try:
                await self._carry(reader, writer, *upstream)
            finally:
                upstream[1].transport.abort()

    async def _carry(
        self,
        from_client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        requests = asyncio.ensure_future(self._request(from_client, to_server))
        answers = asyncio.ensure_future(self._answer(from_server, to_client))
        try:
            await asyncio.wait({requests, answers}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            requests.cancel()
            answers.cancel()
            await asyncio.gather(requests, answers, return_exceptions=True)

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silenced = self._silenced
        while data := await reader.read(65536):
            if silenced == self._silenced:
                writer.write(data)
                await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silenced = self._silenced
        while data := await reader.read(65536):
            if silenced != self._silenced:
                continue
            if self._answers_to_lose != 0:
                if self._answers_to_lose is not None:
                    self._answers_to_lose -= 1
                self.lost += 1
                return
            writer.write(data)
            await writer.drain()
