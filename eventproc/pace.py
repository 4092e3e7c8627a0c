"""A limit of events in a second, for one partition or for all of a processor."""

import asyncio
from collections.abc import Iterable

from eventproc.core.rate import BURST_S, Bucket
from eventproc.ending import Ending


class Pace:
    """Holds back who is too fast. Several pumps of one loop may share one."""

    def __init__(self, per_second: float) -> None:
        self._bucket = Bucket(per_second=per_second)

    @property
    def batch_max(self) -> int:
        """Most events to hand over at once, so that they do not come in bursts."""
        return max(1, int(self._bucket.per_second * BURST_S))

    async def wait(self, count: int, ending: Ending) -> None:
        """Return when so many events may be handed over."""
        wait_s, self._bucket = self._bucket.take(count, asyncio.get_running_loop().time())
        if wait_s > 0:
            async with ending.waiting():
                await asyncio.sleep(wait_s)


class Paces:
    """All the limits that one pump has to keep."""

    def __init__(self, paces: Iterable[Pace], ending: Ending) -> None:
        self._paces = tuple(paces)
        self._ending = ending
        self.batch_max = min((pace.batch_max for pace in self._paces), default=None)

    async def wait(self, count: int) -> None:
        """Return when so many events may be handed over by every limit, and not if it ends."""
        self._ending.check()
        for pace in self._paces:
            await pace.wait(count, self._ending)
