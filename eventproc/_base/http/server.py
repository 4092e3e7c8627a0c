"""Serves answers over HTTP: for as long as a block lasts, or in a thread.

A server in a thread of its own answers while the program's event loop is blocked.
"""

import asyncio
import errno
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final

from eventproc._base.extras import needing
from eventproc._base.http.address import Answer, ListenAddress, Request, Respond, Routes
from eventproc._base.http.guard import is_own_host, own_names
from eventproc._base.http.listener import Listener
from eventproc._base.logs import Logger, error_text
from eventproc._base.tasks import end
from eventproc._base.threads import LoopThread
from eventproc.errors import ConfigurationError

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
``_runtime/descriptors.py``)."""

BODY_BYTES_MAX: Final = 64 * 1024
"""The largest body of a request; a larger one is refused with the status 413."""

BODY_S: Final = 10.0
"""How long a client may take to send it; a slower one is refused with the status 408."""

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

    paths = {"/": index, **routes}
    names = await asyncio.to_thread(own_names, address.host)

    async def respond(request: Request) -> Answer:
        host = request.headers.get("Host")
        if not address.path and not is_own_host(host, names):
            return Answer(
                f"This server has another name than {host!r}: ask for its address, or name that "
                f"host in {name}.\n",
                HTTPStatus.FORBIDDEN,
            )
        if request.method not in {"GET", "HEAD"}:
            return Answer("Only GET is possible here.\n", HTTPStatus.METHOD_NOT_ALLOWED)
        if request.path not in paths:
            return Answer("There is no such path.\n", HTTPStatus.NOT_FOUND)
        return await paths[request.path]()

    async with serve_requests(address, respond, name) as bound:
        yield bound


@asynccontextmanager
async def serve_requests(
    address: ListenAddress, respond: Respond, name: str, *, connections_max: int = CONNECTIONS_MAX
) -> AsyncIterator[ListenAddress]:
    """Serve while the block lasts; arguments and errors are those of ``serve``.

    Args:
        address: Where to listen.
        respond: Called for each request, whatever its method and path. The call is cancelled when
            the client closes the connection.
        name: The option or setting that gave the address, for the message.
        connections_max: The most connections at one time.
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
    async with listening(address, application, name, connections_max=connections_max) as bound:
        yield bound


async def _send(asked: web.Request, answer: Answer) -> web.StreamResponse:
    headers = {"Cache-Control": "no-store", **answer.headers}
    body = answer.body
    if isinstance(body, dict):
        text = f"{json.dumps(body)}\n"  # A shell's prompt comes after it.
        return web.json_response(text=text, status=answer.status, headers=headers)
    headers["Content-Type"] = answer.content_type
    if isinstance(body, str | bytes):
        content = body.encode() if isinstance(body, str) else body
        return web.Response(status=answer.status, body=content, headers=headers)
    response = web.StreamResponse(status=answer.status, headers=headers)
    with suppress(ConnectionError):  # The client closed the connection, and gets nothing more.
        await response.prepare(asked)
        async for piece in body:
            await response.write(piece)
        await response.write_eof()
    return response


@asynccontextmanager
async def listening(
    address: ListenAddress,
    application: web.Application,
    name: str,
    *,
    connections_max: int,
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


class ServerThread:
    """Serves routes on an event loop in a daemon thread, until ``stop``."""

    def __init__(
        self,
        address: ListenAddress,
        routes: Routes,
        name: str,
        *,
        beside: Callable[[], Coroutine[Any, Any, None]],
        log: Logger,
    ) -> None:
        """Start the thread.

        Args:
            address: Where to listen.
            routes: The answer to each path; called in the thread.
            name: The option or setting that gave the address, for the message.
            beside: A coroutine that also runs in the thread, and is cancelled by ``stop``. An error
                in it ends the server, because without its checks the answers could wrongly look
                healthy.
            log: That error is logged here.
        """
        self._beside = beside
        self._log = log
        self._stop_asked = asyncio.Event()
        self._bound: Future[ListenAddress] = Future()
        self._thread = LoopThread("eventproc-http")
        self._serving = asyncio.run_coroutine_threadsafe(
            self._serve(serve(address, routes, name)), self._thread.loop
        )

    async def bound(self) -> ListenAddress:
        """Return the address with its port as soon as it is listened on.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        return await asyncio.shield(asyncio.wrap_future(self._bound))

    async def stop(self) -> None:
        """Close the server, and return when the thread has ended."""
        self._thread.call_soon(self._stop_asked.set)
        await asyncio.shield(asyncio.wrap_future(self._serving))
        await self._thread.end()

    async def _serve(self, server: AbstractAsyncContextManager[ListenAddress]) -> None:
        try:
            async with server as bound:
                self._bound.set_result(bound)
                beside = asyncio.ensure_future(self._beside())
                asked = asyncio.ensure_future(self._stop_asked.wait())
                await asyncio.wait([asked, beside], return_when=asyncio.FIRST_COMPLETED)
                await end([asked, beside])
                if not beside.cancelled():
                    beside.result()  # Raises its error.
        except Exception as error:  # noqa: BLE001 - a thread has no caller
            if self._bound.done():
                self._log.error("http_server_failed", error=error_text(error), exc_info=error)
            else:
                self._bound.set_exception(error)
