"""The connections of a source: one for each node, and one more for each 200 subscriptions."""

import asyncio
from collections import defaultdict

from eventproc.errors import SourceUnavailableError
from eventproc.sources.rabbitmq.streams.address import StreamAddress
from eventproc.sources.rabbitmq.streams.client import Connection
from eventproc.sources.rabbitmq.streams.options import StreamOptions

Server = tuple[str, int]


class Connections:
    """Opens connections as they are needed, and replaces those that ended."""

    def __init__(self, address: StreamAddress, options: StreamOptions) -> None:
        """Connections are opened at the first request."""
        self._address = address
        self._options = options
        self._by_server: dict[Server, list[Connection]] = defaultdict(list)
        self._locks: dict[Server, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._is_closed = False

    async def any(self) -> Connection:
        """Return a connection to the first of the given servers that can be reached.

        Raises:
            SourceUnavailableError: none of them answers.
            SourceRejectedError: the credential is refused.
        """
        errors: list[str] = []
        for server in self._address.servers:
            try:
                return await self._to(server)
            except SourceUnavailableError as error:
                errors.append(str(error))
        raise SourceUnavailableError("; ".join(errors))

    async def to_leader(self, stream: str) -> Connection:
        """Return a connection to the node that leads the stream.

        Not to a replica: a replica may lag, and its end would be before events that were handled.

        Raises:
            SourceUnavailableError: no answer.
            SourceRejectedError: there is no such stream.
        """
        locator = await self.any()
        server = await locator.leader(stream)
        return await self._to(server) if self._options.uses_advertised_address else locator

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        connections = [one for several in self._by_server.values() for one in several]
        self._by_server.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _to(self, server: Server) -> Connection:
        async with self._locks[server]:
            found = [one for one in self._by_server[server] if not one.is_over]
            self._by_server[server] = found
            for connection in found:
                if connection.has_room:
                    return connection
            heartbeat_s = int(self._options.heartbeat.total_seconds())
            connection = Connection(self._address, *server, heartbeat_s)
            try:
                await connection.open()
            except BaseException:
                await connection.close()
                raise
            if self._is_closed:
                await connection.close()
                raise SourceUnavailableError("the source is closed")
            self._by_server[server].append(connection)
            return connection
