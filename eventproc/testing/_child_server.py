"""The base class of servers in child processes: start and stop, pause and resume, the port."""

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class ChildServer(ABC):
    """A server on loopback in a child process; a context manager.

    The first start chooses a port, and later starts use it again.
    """

    def __init__(self) -> None:
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
