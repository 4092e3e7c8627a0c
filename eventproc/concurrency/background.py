"""A base class for work in a thread while a ``with`` block runs."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Background(ABC):
    """Base of classes that work in a daemon thread while their ``with`` block runs.

    Leaving the block does not wait for the thread.
    """

    def __init__(self, thread_name: str) -> None:
        self._thread_name = thread_name
        self._ended = threading.Event()
        """Set when the block ends."""

    def __enter__(self) -> Self:
        """Start the thread."""
        threading.Thread(target=self._run, name=self._thread_name, daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ask the thread to end."""
        self._ended.set()

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_ended`` is set. Called in the thread."""
