"""Closes what a run has opened, in reverse order and within a limit of time.

A client may wait for an answer that never comes. That must not keep a processor from stopping.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from eventproc.logs import Logger

CLOSE_MIN_S: Final = 0.1
"""What each part gets in any case, if the parts before it used up the time."""


class CloseStack:
    """The parts that are open, and how to close each."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._stack = AsyncExitStack()
        self._until_s = 0.0

    def push(self, part: str, close: Callable[[], Awaitable[None]]) -> None:
        """Note a part that was opened, by its name in the log."""
        self._stack.push_async_callback(partial(self._close_part, part, close))

    async def close(self, until_s: float) -> None:
        """Close every part, the newest first, until this time of the running loop.

        A part that is not closed by then is cancelled, logged and left. An error of a part is
        raised after the others were closed.
        """
        self._until_s = until_s
        await self._stack.aclose()

    async def _close_part(self, part: str, close: Callable[[], Awaitable[None]]) -> None:
        now_s = asyncio.get_running_loop().time()
        limit = asyncio.timeout_at(max(self._until_s, now_s + CLOSE_MIN_S))
        try:
            async with limit:
                await close()
        except TimeoutError:
            if not limit.expired():  # Its own, not ours.
                raise
            self._log.error("close_timed_out", part=part)
