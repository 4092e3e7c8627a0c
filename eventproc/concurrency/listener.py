"""The end of a server that listens."""

import asyncio
from typing import Final

_ACCEPT_TURNS: Final = 3
"""Turns of the loop from a connection that was accepted to its ``connection_made``."""


async def stop_listening(server: asyncio.Server) -> None:
    """Close the ports of *server*, after its protocols got what it had accepted.

    A connection whose transport is made after ``Server.close`` stays open, and nobody knows of
    it: asyncio accepts in one turn of the loop and makes the transport in the next.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    for _ in range(_ACCEPT_TURNS):
        await asyncio.sleep(0)
    server.close()
