"""Whether a partition may receive: open, or paused until somebody opens it again."""

import asyncio
from collections.abc import Callable


class Gate:
    """The switch behind ``pause`` and ``resume`` of one partition. Lives on the pump's loop."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self.on_pause: Callable[[], None] = lambda: None
        """What to do at once when it is paused."""

    @property
    def is_paused(self) -> bool:
        """Whether nothing may be received."""
        return not self._opened.is_set()

    def pause(self) -> None:
        """Let nothing more be received."""
        if not self.is_paused:
            self._opened.clear()
            self.on_pause()

    def resume(self) -> None:
        """Let it be received again."""
        self._opened.set()

    async def until_open(self) -> None:
        """Wait until it may be received."""
        await self._opened.wait()
