"""The emulator as a program: it serves until it is told to end."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from eventproc.emulator.configuration import EmulatorConfiguration
from eventproc.emulator.server import EmulatorServer


def run(
    configuration: EmulatorConfiguration,
    *,
    on_ready: Callable[[EmulatorServer], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; blocks.

    Args:
        configuration: What to serve, and where.
        on_ready: Called once clients can connect: the place to print the connection string.

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
    """The same inside a running loop; cancelling it ends it too.

    To start one and go on, use ``async with EmulatorServer(configuration)``.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # No signal handlers on Windows, nor in any thread but the main one.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, ended.set)
    async with EmulatorServer(configuration) as server:
        if on_ready is not None:
            on_ready(server)
        await ended.wait()
