"""Runs the emulator as a program, until SIGINT or SIGTERM."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from eventproc.emulator.hub.configuration import EmulatorConfiguration
from eventproc.emulator.server import EmulatorServer


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
