"""Closes an asyncio server of a test without leaking connections that it has just accepted."""

import asyncio
from collections.abc import Iterable
from typing import Final

from eventproc._base.tasks import end

_ACCEPT_TURNS: Final = 3
"""Turns of the loop from a connection that was accepted to its ``connection_made``."""

_ABORT_TURNS: Final = 10
"""Turns of the loop in which the sockets of aborted connections are closed, with TLS as well."""


async def stop_listening(server: asyncio.Server) -> None:
    """Close the ports of *server* when all connections that it accepted have their protocol.

    asyncio accepts a connection in one turn of the loop and makes its transport in the next. A
    transport that is made after ``Server.close`` is never closed.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    for _ in range(_ACCEPT_TURNS):
        await asyncio.sleep(0)
    server.close()


async def end_connections(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel the tasks that serve connections, and return when their sockets are closed.

    Each task aborts its connection when it ends. The loop may end right after: a socket that it
    has not closed by then fails the test that happens to come next.
    """
    await end(list(tasks))
    for _ in range(_ABORT_TURNS):
        await asyncio.sleep(0)
