"""Closes an asyncio server without leaking connections that it has just accepted."""

import asyncio
from typing import Final

_ACCEPT_TURNS: Final = 3
"""Turns of the loop from a connection that was accepted to its ``connection_made``."""


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
