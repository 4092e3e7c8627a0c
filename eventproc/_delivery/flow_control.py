"""Pausing a partition, and its limits in events per second."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from eventproc._core.ownership.pauses import Pause
from eventproc._group.pumps.stop_scope import StopScope

BURST_S: Final = 1.0
"""How many seconds' worth of events may be delivered at once after a pause."""


class PauseSwitch:
    """Whether one partition is paused. Used on the pump's loop only.

    It may be paused in this process, from ``pause`` to ``resume``, and by the group, as ``follow``
    says. Neither pause ends the other.
    """

    def __init__(self, on_pause: Callable[[], None] = lambda: None) -> None:
        """Begin without a pause; *on_pause* is called at once when the partition is paused."""
        self._on_pause = on_pause
        self.is_paused_here = False
        """Whether ``pause`` was called, and ``resume`` not since."""

        self.group_pause: Pause | None = None
        self.is_paused = False
        """Whether receiving is paused."""

        self._opened = asyncio.Event()
        self._opened.set()

    def pause(self) -> None:
        """Stop receiving."""
        self.is_paused_here = True
        self._adjust()

    def resume(self) -> None:
        """End the pause of this process."""
        self.is_paused_here = False
        self._adjust()

    def follow(self, group_pause: Pause | None) -> None:
        """Pause while the group pauses the partition; ``None``: the group does not."""
        self.group_pause = group_pause
        self._adjust()

    def _adjust(self) -> None:
        was_paused = self.is_paused
        self.is_paused = self.is_paused_here or self.group_pause is not None
        if not self.is_paused:
            self._opened.set()
        elif not was_paused:
            self._opened.clear()
            self._on_pause()

    async def until_open(self, *, within_s: float | None = None) -> None:
        """Wait while receiving is paused, for at most *within_s* seconds; ``None``: no limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
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
            with stop_scope.waiting():
                await asyncio.sleep(wait_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A limit in events per second, and how much of it is used.

    The generic cell rate algorithm (ITU-T I.371) in its virtual scheduling form: instead of a
    count of tokens it keeps the time at which the bucket would be full again.
    """

    per_second: float
    full_at_s: float = float("-inf")

    def take(self, count: int, now_s: float) -> tuple[float, "Bucket"]:
        """Return the seconds to wait before delivering *count* events, and the bucket after that.

        A batch larger than the bucket does not wait until it would fit; later batches wait
        longer instead.
        """
        full_at_s = max(self.full_at_s, now_s) + count / self.per_second
        wait_s = max(0.0, full_at_s - now_s - max(BURST_S, count / self.per_second))
        return wait_s, replace(self, full_at_s=full_at_s)
