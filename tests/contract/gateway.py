"""A gateway before a storage service, which may answer requests itself or change them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

_OF_A_CONNECTION = ("Transfer-Encoding", "Connection", "Keep-Alive", "Content-Length")


class Gateway:
    """Passes requests to a service on loopback, unless ``answer`` returns another answer."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.is_lost: Callable[[web.Request], bool] = lambda _: False
        """Whether the connection breaks when the service has answered this request."""

        self.host: str | None = None
        """The name by which the service is called, instead of 127.0.0.1."""

        self.port = 0

    @asynccontextmanager
    async def before(self, port: int) -> AsyncIterator["Gateway"]:
        """Listen before the service at this port."""
        async with aiohttp.ClientSession(
            f"http://127.0.0.1:{port}", auto_decompress=False
        ) as service:

            async def handle(request: web.Request) -> web.StreamResponse:
                return await self._pass(service, request)

            app = web.Application()
            app.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(app)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.port = runner.addresses[0][1]
            try:
                yield self
            finally:
                await runner.cleanup()

    async def _pass(
        self, service: aiohttp.ClientSession, request: web.Request
    ) -> web.StreamResponse:
        body = await request.read()
        if self.answer is not None and (own := await self.answer(request)) is not None:
            return own
        headers = request.headers.copy()
        if self.host is not None:
            headers["Host"] = f"{self.host}:{self.port}"
        async with service.request(
            request.method,
            request.rel_url,
            headers=headers,
            data=body or None,
            skip_auto_headers=["Content-Type"],  # requests are signed with it
            allow_redirects=False,
        ) as answer:
            if self.is_lost(request):
                assert request.transport is not None
                request.transport.abort()
            headers = CIMultiDict(answer.headers)
            for name in _OF_A_CONNECTION:
                headers.popall(name, None)
            if request.method == "HEAD":
                headers["Content-Length"] = answer.headers.get("Content-Length", "0")
            return web.Response(status=answer.status, headers=headers, body=await answer.read())
