"""A server that accepts messages by their fencing token, and logs each of them."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Final, NamedTuple, Self

from eventproc import HeldResource

HOST: Final = "127.0.0.1"
EXPIRATION: Final = timedelta(seconds=2)
INTERVAL: Final = timedelta(seconds=0.5)
REBALANCE: Final = timedelta(seconds=0.25)
"""The default."""

PACE: Final = timedelta(seconds=0.02)


class Message(NamedTuple):
    """A message that the server read; it was accepted if no higher epoch had come before."""

    at_s: float
    name: str
    epoch: int
    owner_id: str
    pid: int
    is_accepted: bool


def message(held: HeldResource) -> bytes:
    """Return the line that a holder sends."""
    return (json.dumps([held.name, held.epoch, held.owner_id, os.getpid()]) + "\n").encode()


class FenceServer(AbstractContextManager["FenceServer"]):
    """Keeps the highest epoch of each name, in a thread of its own. Times are monotonic seconds."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self.messages: list[Message] = []
        self.newest: dict[str, Message] = {}
        """The newest accepted message of each name."""

        self.port = 0
        self._started = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop."""
        self._stop()
        self._thread.join()

    def take(self, name: str, epoch: int, owner_id: str, pid: int) -> None:
        """Accept or refuse a message, and log it."""
        newest = self.newest.get(name)
        is_accepted = newest is None or epoch >= newest.epoch
        read = Message(time.monotonic(), name, epoch, owner_id, pid, is_accepted)
        self.messages.append(read)
        if is_accepted:
            self.newest[name] = read

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._read, HOST, 0)
        stopped = asyncio.Event()
        self._stop = partial(asyncio.get_running_loop().call_soon_threadsafe, stopped.set)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await stopped.wait()
        server.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async for line in reader:
                if line.endswith(b"\n"):  # A process that was killed may leave a part of one.
                    self.take(*json.loads(line))
        except ConnectionError:
            pass
        finally:
            writer.close()
