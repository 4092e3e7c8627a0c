"""Serves answers over HTTP, for as long as a block lasts."""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from eventproc.endpoints.address import ListenAddress
from eventproc.endpoints.answer import Answer, Route, Routes
from eventproc.errors import ConfigurationError
from eventproc.extras import needing

with needing("http"):
    from aiohttp import web

GRACE_S: Final = 1.0
"""How long a request under way may continue when the block ends."""

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

    application = web.Application()
    for path, route in {"/": index, **routes}.items():
        application.router.add_get(path, _handler(route))
    async with listening(address, application, name) as bound:
        yield bound


@asynccontextmanager
async def listening(
    address: ListenAddress, application: web.Application, name: str
) -> AsyncIterator[ListenAddress]:
    """Serve an application while the block lasts; arguments and errors are those of ``serve``.

    A handler is cancelled when its client closes the connection.
    """
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=GRACE_S
    )
    await runner.setup()
    site: web.BaseSite = (
        web.UnixSite(runner, address.path)
        if address.path
        else web.TCPSite(runner, address.host, address.port)
    )
    try:
        try:
            await site.start()
        except OSError as error:
            cause = _CAUSES.get(error.errno or 0, error.strerror)
            raise ConfigurationError(f"{name} {address} cannot be listened on: {cause}") from error
        yield address if address.path else ListenAddress(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)  # A closed transport closes its socket in the loop's next pass.


def _handler(route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(_: web.Request) -> web.Response:
        return _response(await route())

    return handle


def _response(answer: Answer) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    if isinstance(answer.body, dict):
        return web.json_response(answer.body, status=answer.status, headers=headers)
    headers["Content-Type"] = answer.content_type
    return web.Response(body=answer.body.encode(), status=answer.status, headers=headers)
