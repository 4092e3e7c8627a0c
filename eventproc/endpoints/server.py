"""Serves answers over HTTP, for as long as a block lasts."""

import asyncio
import errno
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from eventproc.endpoints.address import ListenAddress
from eventproc.endpoints.answer import Answer, Route, Routes
from eventproc.endpoints.guard import is_own_host, own_names
from eventproc.endpoints.listener import Listener
from eventproc.errors import ConfigurationError
from eventproc.extras import needing

with needing("http"):
    from aiohttp import web
    from aiohttp.http import HttpProcessingError
    from aiohttp.typedefs import Handler

GRACE_S: Final = 1.0
"""How long a request under way may continue when the block ends."""

IDLE_S: Final = 15.0
"""How long a connection may be open without a whole request; nginx waits 75 s, Apache 5 s."""

CONNECTIONS_MAX: Final = 32
"""Probes and scrapers need a few; a processor has descriptors to spare for so many (``SPARE`` in
``runtime/descriptors.py``)."""

_LOG: Final = logging.getLogger("eventproc.endpoints.http")
"""What aiohttp logs to: errors of ours, with their traceback."""


class _NoMistakesOfClients(logging.Filter):
    """Drops records on requests that are no HTTP: the client is told, with the status 400."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


_LOG.addFilter(_NoMistakesOfClients())

_CAUSES: Final = {
    errno.EADDRINUSE: "another process listens there already",
    errno.EADDRNOTAVAIL: "the host is no address of this machine",
    errno.EACCES: "this user may not listen there",
}


@asynccontextmanager
async def serve(address: ListenAddress, routes: Routes, name: str) -> AsyncIterator[ListenAddress]:
    """Serve GET and HEAD of these paths while the block lasts; yields the address with its port.

    Without a route for it, ``/`` answers with the list of paths.

    Args:
        address: Where to listen.
        routes: The answer to each path.
        name: The option or setting that gave the address, for the message.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """

    async def index() -> Answer:
        return Answer({"paths": [*routes]})

    names = await asyncio.to_thread(own_names, address.host)

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not address.path and not is_own_host(request.headers.get("Host"), names):
            raise web.HTTPForbidden(
                text=f"This server has another name than {request.host!r}: ask for its address, or "
                f"name that host in {name}.\n"
            )
        return await handler(request)

    application = web.Application(middlewares=[check_host])
    for path, route in {"/": index, **routes}.items():
        application.router.add_get(path, _handler(route))
    async with listening(address, application, name) as bound:
        yield bound


@asynccontextmanager
async def listening(
    address: ListenAddress,
    application: web.Application,
    name: str,
    *,
    connections_max: int = CONNECTIONS_MAX,
    ssl_context: ssl.SSLContext | None = None,
) -> AsyncIterator[ListenAddress]:
    """Serve an application while the block lasts; arguments and errors are those of ``serve``.

    A handler is cancelled when its client closes the connection. A connection on which no handler
    runs is closed after ``IDLE_S``, and at once if there are too many.
    """
    loop = asyncio.get_running_loop()
    silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}
    """Connections without a first request. Before 3.14.5, aiohttp waits for that without end."""
    busy: set[asyncio.BaseProtocol] = set()

    def new_protocol() -> asyncio.BaseProtocol:
        assert runner.server is not None, "it is set up"
        protocol = runner.server()
        silent[protocol] = loop.call_later(IDLE_S, end_silent, protocol)
        return protocol

    def end_silent(protocol: web.RequestHandler) -> None:
        del silent[protocol]
        protocol.force_close()

    @web.middleware
    async def note_busy(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.protocol in silent:
            silent.pop(request.protocol).cancel()
        busy.add(request.protocol)
        try:
            return await handler(request)
        finally:
            busy.discard(request.protocol)

    application.middlewares.insert(0, note_busy)
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=_LOG,
        handler_cancellation=True,
        shutdown_timeout=GRACE_S,
        keepalive_timeout=IDLE_S,
    )
    await runner.setup()
    listener = Listener(
        new_protocol,
        connections_max=connections_max,
        is_idle=lambda protocol: protocol not in busy,
        ssl_context=ssl_context,
    )
    try:
        try:
            bound = await listener.open(address)
        except OSError as error:
            cause = _CAUSES.get(error.errno or 0, error.strerror)
            raise ConfigurationError(f"{name} {address} cannot be listened on: {cause}") from error
        yield bound
    finally:
        await listener.close()
        await runner.cleanup()
        for timer in silent.values():
            timer.cancel()
        await asyncio.sleep(0)  # A closed transport closes its socket in the loop's next pass.


def _handler(route: Route) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return _response(await route())

    return handle


def _response(answer: Answer) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    if isinstance(answer.body, dict):
        return web.json_response(answer.body, status=answer.status, headers=headers)
    headers["Content-Type"] = answer.content_type
    return web.Response(body=answer.body.encode(), status=answer.status, headers=headers)
