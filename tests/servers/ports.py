"""Ports of servers that tests start, and the wait until their processes no longer use them."""

import errno
import random
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

STOP_MAX_S: Final = 20.0
"""Longer than any of the servers needs to end."""

_PORTS: Final = range(15_000, 32_000)
"""Below the ports that Linux and macOS give to outgoing connections. One of those can be taken
between the look at it and the server's start, or while the server is down."""


def free_port() -> int:
    """Return a port on loopback on which nothing listens now.

    Ports are drawn at random, so that processes which look at the same time find different ones.
    """
    draw = random.SystemRandom()  # Not the shared generator, which tests seed.
    while True:
        port = draw.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port


def listens(port: int) -> bool:
    """Return whether a server listens on a port of loopback."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
            # If no server listens, the system may choose this port for our own socket, which then
            # connects to itself.
            return bool(link.getsockname() != link.getpeername())
    except OSError:
        return False


def wait_for_end(pids: Iterable[int]) -> None:
    """Return when none of these processes runs, but after ``STOP_MAX_S`` in any case."""
    until_s = time.monotonic() + STOP_MAX_S
    for pid in pids:
        while _is_alive(pid) and time.monotonic() < until_s:
            time.sleep(0.01)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # The latter if it ends while it is read.
        return False
    return state != "Z"
