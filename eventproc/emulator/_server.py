"""The emulator: the AMQP server and the control endpoint beside it, also as a program."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

from eventproc._base.http.address import ListenAddress
from eventproc._base.resource import AsyncResource
from eventproc.emulator._amqp_server import AmqpServer
from eventproc.emulator._hub.configuration import EmulatorConfiguration
from eventproc.emulator._hub.hub import Clock, system_clock
from eventproc.errors import ConfigurationError


class EmulatorServer(AmqpServer, AsyncResource):
    """An Event Hubs endpoint. ``async with`` opens and closes it; events survive ``stop``.

    Call every method on the loop that runs the server.
    """

    def __init__(self, configuration: EmulatorConfiguration, clock: Clock = system_clock) -> None:
        super().__init__(configuration, clock)
        self._control = AsyncExitStack()
        """Serves the endpoint, while it is served."""

        self._health_port: int | None = None

    async def open(self) -> None:
        """Start, with the health endpoint if one is configured.

        Raises:
            ConfigurationError: A port is taken, the host is not this machine's, or the extra
                ``http`` is missing.
        """
        host, port = self.configuration.host, self.configuration.health_port
        try:
            await self.start()
            if port is not None:
                from eventproc.emulator._control import serving  # noqa: PLC0415 - an extra

                control = serving(self, ListenAddress(host, port))
                self._health_port = await self._control.enter_async_context(control)
        except ConfigurationError:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop and release the files. Repeating is harmless."""
        await self._control.aclose()
        await self.stop()
        self.namespace.close()

    @property
    def health_port(self) -> int | None:
        """The port of the health endpoint, if there is one."""
        return self._health_port


def run(
    configuration: EmulatorConfiguration,
    *,
    on_ready: Callable[[EmulatorServer], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; blocks.

    Args:
        configuration: What to serve, and where.
        on_ready: Called once clients can connect, for example to print the connection string.

    Raises:
        ConfigurationError: A port is taken, or the directory holds something else.
    """
    with suppress(KeyboardInterrupt):  # where signals cannot be handled, Ctrl-C still ends it
        asyncio.run(serve(configuration, on_ready=on_ready))


async def serve(
    configuration: EmulatorConfiguration,
    *,
    on_ready: Callable[[EmulatorServer], None] | None = None,
) -> None:
    """Do the same inside a running loop; cancelling the coroutine ends it, too.

    To start one and continue, use ``async with EmulatorServer(configuration)``.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Signal handlers work only in the main thread, and not on Windows.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, ended.set)
    async with EmulatorServer(configuration) as server:
        if on_ready is not None:
            on_ready(server)
        await ended.wait()
