"""A small HTTP server: the only file that imports ``aiohttp`` to serve.

What it serves is given as a function from a request to an answer, both of them plain values, so
that what decides on an answer can be tested without a server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeAlias

from eventproc.errors import ConfigurationError
from eventproc.extras import needing

with needing("http"):
    from aiohttp import web

BODY_BYTES_MAX: Final = 64 * 1024
"""The largest body of a request; a longer one is refused with the status 413."""

STOP_S: Final = 1.0
"""How long answers that are under way may take when the server stops; then they are cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asks for."""

    method: str
    path: str
    """Without the query, percent-decoded."""

    headers: Mapping[str, str]
    """By name, in any case of letters."""

    body: bytes = b""
    local_host: str = ""
    """The address of this machine at which the connection arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the client gets."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    body: bytes | AsyncIterator[bytes] = b""
    """An iterator is sent piece by piece, for as long as it lasts. It is cancelled when the client
    closes the connection."""

    headers: Mapping[str, str] = field(default_factory=dict)


Serve: TypeAlias = Callable[[Request], Awaitable[Answer]]


@asynccontextmanager
async def serving(
    host: str, port: int, serve: Serve, *, option: str = "--http"
) -> AsyncIterator[int]:
    """Serve for as long as the block lasts; yields the port.

    A call of *serve* is cancelled when its client closes the connection.

    Args:
        host: The address to listen on.
        port: The port; 0 for any free one.
        serve: Called for each request, whatever its method and path.
        option: The option that gave the address, for the error.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """

    async def answer(asked: web.Request) -> web.StreamResponse:
        local = asked.transport.get_extra_info("sockname") if asked.transport else None
        request = Request(
            method=asked.method,
            path=asked.path,
            headers=asked.headers,
            body=await asked.read(),
            local_host=str(local[0]) if isinstance(local, tuple) else "",
        )
        return await _send(asked, await serve(request))

    application = web.Application(client_max_size=BODY_BYTES_MAX)
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=STOP_S
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigurationError(
                f"{option} {host}:{port} cannot be listened on: {error.strerror}"
            ) from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)  # A closed transport closes its socket in the loop's next pass.


async def _send(asked: web.Request, answer: Answer) -> web.StreamResponse:
    headers = {**answer.headers, "Content-Type": answer.content_type}
    if isinstance(answer.body, bytes):
        return web.Response(status=answer.status, body=answer.body, headers=headers)
    response = web.StreamResponse(status=answer.status, headers=headers)
    try:
        await response.prepare(asked)
        async for piece in answer.body:
            await response.write(piece)
        await response.write_eof()
    except ConnectionError:
        pass  # The client closed the connection, and gets nothing more.
    return response
