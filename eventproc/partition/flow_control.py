"""Pausing a partition, and rate limits in events per second."""

import asyncio
from collections.abc import Callable

from eventproc.core.policy import BURST_S, Bucket
from eventproc.pumps.stop_scope import StopScope


class PauseSwitch:
    """The switch behind ``pause`` and ``resume`` of one partition. Used on the pump's loop only."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self.on_pause: Callable[[], None] = lambda: None
        """Called at once when the partition is paused."""

    @property
    def is_paused(self) -> bool:
        """Whether receiving is paused."""
        return not self._opened.is_set()

    def pause(self) -> None:
        """Stop receiving, and call ``on_pause``."""
        if not self.is_paused:
            self._opened.clear()
            self.on_pause()

    def resume(self) -> None:
        """Allow receiving again."""
        self._opened.set()

    async def until_open(self) -> None:
        """Wait while receiving is paused."""
        await self._opened.wait()


class RateLimiter:
    """Limits events per second. Pumps of one event loop may share one."""

    def __init__(self, per_second: float) -> None:
        self._bucket = Bucket(per_second=per_second)

    @property
    def batch_max(self) -> int:
        """The most events to deliver at once, so that delivery is smooth."""
        return max(1, int(self._bucket.per_second * BURST_S))

    async def wait(self, count: int, stop_scope: StopScope) -> None:
        """Return when *count* events may be delivered."""
        wait_s, self._bucket = self._bucket.take(count, asyncio.get_running_loop().time())
        if wait_s > 0:
            async with stop_scope.waiting():
                await asyncio.sleep(wait_s)
