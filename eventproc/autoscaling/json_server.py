"""Serves the newest vote as JSON, for KEDA's metrics-api and anything else that speaks HTTP."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from eventproc.autoscaling.autoscaler import Vote
from eventproc.errors import ConfigurationError
from eventproc.extras import needing

with needing("keda"):
    from aiohttp import web

NO_VOTE = 503
"""The status while there was no answer of store and hub yet: not a number, so no vote."""


@asynccontextmanager
async def serve_json(host: str, port: int, vote: Callable[[], Vote]) -> AsyncIterator[int]:
    """Serve for as long as the block lasts; yields the port.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """

    async def answer(_: web.Request) -> web.Response:
        newest = vote()
        is_known = newest.decision.replicas is not None
        return web.json_response(newest.as_json(), status=200 if is_known else NO_VOTE)

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigurationError(
                f"--http {host}:{port} cannot be listened on: {error.strerror}"
            ) from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
