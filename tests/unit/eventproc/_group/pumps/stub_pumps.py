"""Pumps that only note what is asked of them, for tests of those that start and end them."""

import asyncio
from datetime import timedelta
from random import Random

from eventproc import Backoff
from eventproc._base.logs import get_logger
from eventproc._core.ownership.pauses import Pause
from eventproc._core.placement.loads import WorkDone
from eventproc._group.pumps.pumps import Pumps
from eventproc.models import CloseReason, WriteOutcome
from eventproc.models._statistics import DeliveryCounters
from tests.scenarios.group_setup import seconds


class StubPump:
    """A pump that drains for a second; a test says how it ends."""

    def __init__(self, *, is_forced: bool = False) -> None:
        self.counters = DeliveryCounters()
        self.is_lost = self.is_paused = False
        self.is_forced = is_forced
        self.group_pause: Pause | None = None
        self.budget: timedelta | None = None
        self.has_unstored_progress = False
        self.ended_by: CloseReason | None = None
        self._end: asyncio.Future[CloseReason] = asyncio.get_running_loop().create_future()

    @property
    def work(self) -> WorkDone:
        """Nothing."""
        return WorkDone(busy=0.0, events=0, bytes=0)

    def end(self, reason, *, within=None) -> None:
        """Begin to drain."""
        self.ended_by, self.budget = reason, within
        if not self._end.done():
            self._end.set_result(reason)

    def fail(self, error: Exception) -> None:
        """End with an error."""
        self._end.set_exception(error)

    def lose(self) -> None:
        """Note that the partition is lost."""
        self.is_lost = True

    def pause(self) -> None:
        """Note a pause."""
        self.is_paused = True

    def resume(self) -> None:
        """Note the end of a pause."""
        self.is_paused = False

    def follow(self, pause) -> None:
        """Note the group's pause."""
        self.group_pause = pause

    async def run(self) -> CloseReason:
        """Serve until drained."""
        reason = await self._end
        await seconds(1)
        return reason


class PumpsFixture:
    """Pumps that are stubs, and the transfers that they asked for."""

    def __init__(self) -> None:
        self.made: list[tuple[str, StubPump]] = []
        self.changed_at_s: list[float] = []
        self.transfers: list[tuple[str, str | None]] = []
        self.failures: list[BaseException] = []
        """What the next attempts to make a pump raise."""

        self.outcome: WriteOutcome | Exception = WriteOutcome.WON
        self.pumps = Pumps(
            self._make,
            self._transfer,
            backoff=Backoff(initial=timedelta(seconds=8), maximum=timedelta(seconds=60)),
            changed=lambda: self.changed_at_s.append(asyncio.get_running_loop().time()),
            rng=Random(0),
            log=get_logger("eventproc.test"),
        )

    async def adjust(self, owned, hand_overs=None, others=()) -> None:
        """Adjust the pumps, and let those that are due start."""
        self.pumps.adjust(owned, hand_overs or {}, others)
        await seconds(0)

    async def replace_pump(self) -> None:
        """End the pump of partition 0, if it has one, and start the next."""
        if self.pumps.running:
            self.newest().end(CloseReason.SHUTDOWN)
            await seconds(2)
        await self.adjust("0")

    def served(self) -> list[str]:
        """Return the partition of each pump, in the order in which they were made."""
        return [p for p, _ in self.made]

    def newest(self, partition_id: str = "0") -> StubPump:
        """Return the last pump that was made for a partition."""
        return [pump for p, pump in self.made if p == partition_id][-1]

    def _make(self, partition_id, *, is_forced):
        if self.failures:
            raise self.failures.pop(0)
        self.made.append((partition_id, StubPump(is_forced=is_forced)))
        return self.made[-1][1]

    async def _transfer(self, partition_id, owner_id):
        self.transfers.append((partition_id, owner_id))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome
