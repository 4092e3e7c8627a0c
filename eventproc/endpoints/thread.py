"""A server in a thread of its own: it answers while the program's event loop is blocked."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from eventproc.concurrency.tasks import end
from eventproc.endpoints.address import ListenAddress
from eventproc.endpoints.answer import Routes
from eventproc.endpoints.server import serve
from eventproc.errors import ConfigurationError
from eventproc.logs import Logger, shown


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
        self._address = address
        self._routes = routes
        self._name = name
        self._beside = beside
        self._log = log
        self._bound: Future[ListenAddress] = Future()
        self._ended: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_asked = asyncio.Event()
        threading.Thread(target=self._run, name="eventproc-http", daemon=True).start()

    async def bound(self) -> ListenAddress:
        """Return the address with its port as soon as it is listened on.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        return await asyncio.shield(asyncio.wrap_future(self._bound))

    async def stop(self) -> None:
        """Close the server, and return when the thread has ended."""
        with suppress(ConfigurationError):
            await self.bound()
        if self._loop is not None:
            with suppress(RuntimeError):  # It has ended already.
                self._loop.call_soon_threadsafe(self._stop_asked.set)
        await asyncio.shield(asyncio.wrap_future(self._ended))

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - a thread has no caller
            if self._bound.done():
                self._log.error("http_server_failed", error=shown(error), exc_info=error)
            else:
                self._bound.set_exception(error)
        finally:
            self._ended.set_result(None)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with serve(self._address, self._routes, self._name) as bound:
            beside = asyncio.ensure_future(self._beside())
            asked = asyncio.ensure_future(self._stop_asked.wait())
            self._bound.set_result(bound)
            await asyncio.wait([asked, beside], return_when=asyncio.FIRST_COMPLETED)
            error = beside.exception() if beside.done() else None
            await end([asked, beside])
        if error is not None:
            raise error
