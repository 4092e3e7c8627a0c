"""Serves requests whose answer depends on more than the path.

A request and its reply are plain values, so that the code that replies can be tested without a
server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeAlias

from eventproc.endpoints.address import ListenAddress
from eventproc.endpoints.server import listening
from eventproc.extras import needing

with needing("http"):
    from aiohttp import web

BODY_BYTES_MAX: Final = 64 * 1024
"""The largest body of a request; a larger one is refused with the status 413."""

BODY_S: Final = 10.0
"""How long a client may take to send it; a slower one is refused with the status 408."""

CONNECTIONS_MAX: Final = 100
"""A browser keeps one open for as long as it shows the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    """The path without the query, percent-decoded."""

    headers: Mapping[str, str]
    """The headers by name; look-ups ignore case."""

    body: bytes = b""
    local_host: str = ""
    """The address of this machine at which the connection arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply to a client."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    body: bytes | AsyncIterator[bytes] = b""
    """The body. The pieces of an iterator are sent one by one until it ends; it is cancelled when
    the client closes the connection."""

    headers: Mapping[str, str] = field(default_factory=dict)


Respond: TypeAlias = Callable[[Request], Awaitable[Reply]]


@asynccontextmanager
async def serve_requests(
    address: ListenAddress, respond: Respond, name: str
) -> AsyncIterator[ListenAddress]:
    """Serve while the block lasts; yields the address with its port.

    Args:
        address: Where to listen.
        respond: Called for each request, whatever its method and path. The call is cancelled when
            the client closes the connection.
        name: The option or setting that gave the address, for the message.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """

    async def handle(asked: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(BODY_S):
                body = await asked.read()
        except TimeoutError as error:
            raise web.HTTPRequestTimeout from error
        except web.RequestPayloadError as error:
            raise web.HTTPBadRequest(text="The body cannot be decoded.") from error
        local = asked.transport.get_extra_info("sockname") if asked.transport else None
        request = Request(
            method=asked.method,
            path=asked.path,
            headers=asked.headers,
            body=body,
            local_host=str(local[0]) if isinstance(local, tuple) else "",
        )
        return await _send(asked, await respond(request))

    application = web.Application(client_max_size=BODY_BYTES_MAX)
    application.router.add_route("*", "/{path:.*}", handle)
    async with listening(address, application, name, connections_max=CONNECTIONS_MAX) as bound:
        yield bound


async def _send(asked: web.Request, reply: Reply) -> web.StreamResponse:
    headers = {**reply.headers, "Content-Type": reply.content_type}
    if isinstance(reply.body, bytes):
        return web.Response(status=reply.status, body=reply.body, headers=headers)
    response = web.StreamResponse(status=reply.status, headers=headers)
    with suppress(ConnectionError):  # The client closed the connection, and gets nothing more.
        await response.prepare(asked)
        async for piece in reply.body:
            await response.write(piece)
        await response.write_eof()
    return response
