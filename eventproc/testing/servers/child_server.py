"""The base class of servers in child processes: start and stop, pause and resume, the port."""

import errno
import os
import random
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

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


class ChildServer(ABC):
    """A server on loopback in a child process, for tests and demonstrations; a context manager.

    The first start chooses a port, and later starts use it again.
    """

    def __init__(self, start_timeout: timedelta) -> None:
        self._start_timeout_s = start_timeout.total_seconds()
        self._process: subprocess.Popen[str] | None = None
        self._pid = 0
        """The process id of the server itself, which may be a child of ``_process``."""

        self._port = 0

    @abstractmethod
    def start(self) -> None:
        """Start it, and return when it listens. Does nothing if it runs already."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it, and wait for its end. Repeating is harmless."""

    @property
    def is_running(self) -> bool:
        """Whether the process lives (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def _address(self) -> str:
        if self._port == 0:
            raise RuntimeError(f"this {type(self).__name__} was never started: call start() first")
        return f"127.0.0.1:{self._port}"

    def pause(self) -> None:
        """Freeze it: connections are accepted and nothing is answered until ``resume``."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after ``pause``, with all data. Does nothing if it is not paused."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running:
            os.kill(self._pid, number)

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.stop()
