"""The emulator: the AMQP server, and the control endpoint beside it."""

from contextlib import AsyncExitStack

from eventproc.concurrency.resource import AsyncResource
from eventproc.emulator.amqp_server import AmqpServer
from eventproc.emulator.hub.configuration import EmulatorConfiguration
from eventproc.emulator.hub.hub import Clock, system_clock
from eventproc.endpoints.address import ListenAddress
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
                from eventproc.emulator.control import serving  # noqa: PLC0415 - an extra

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
