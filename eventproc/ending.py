"""How a pump is told to end, and what of its waits and calls is cut short then.

Rule 1: waits are cut at once. Calls of the handler, one or one for each lane, may finish within
their common budget, unless the partition is lost: then they are cancelled at once.
Rule 2: a call that outlives the trust in the lease is cancelled, but the pump goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from types import TracebackType
from typing import Final

from eventproc.models import CloseReason

TRUST_POLL_S: Final = 0.05
"""How often a pump whose lease lapsed looks whether it was renewed."""

TRUST_LOOK_S: Final = 1.0
"""The longest time between two looks at the lease of a call under way: a machine that was suspended
wakes up to a lease that is old and to timers that know nothing of it."""

TRUST_STEP_S: Final = 0.001
"""The least time between two looks: less may be too little for a clock to move at all."""


class EndedError(Exception):
    """The pump was told to end while it waited. Never leaves the pump."""


class GivenUpError(Exception):
    """The pump has to close for this reason, although nobody told it to. Never leaves the pump."""

    def __init__(self, reason: CloseReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def is_cancelled() -> bool:
    """Whether somebody cancelled this task; else a ``CancelledError`` here is of the user's own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Trust:
    """How long the lease of one partition may still be trusted, asked anew at each use."""

    def __init__(self, until_s: Callable[[], float], clock: Callable[[], float]) -> None:
        self._until_s = until_s
        self._clock = clock

    @property
    def remaining_s(self) -> float:
        """Seconds from now; zero or less: not trusted."""
        return self._until_s() - self._clock()


class Ending:
    """The one place that knows whether, and why, a pump has to end."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._waits: set[asyncio.Timeout] = set()
        self._calls: set[asyncio.Timeout] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        self.reason: CloseReason | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the partition went to somebody else."""
        return self.reason is CloseReason.OWNERSHIP_LOST

    @property
    def is_trusted(self) -> bool:
        """Whether the handler may act on the partition now."""
        return not self.is_lost and not self._is_over and self._trust.remaining_s > 0

    @property
    def is_waiting_for_trust(self) -> bool:
        """Whether nothing may be handed over, because the lease is too old."""
        return self._trust.remaining_s <= 0

    def end(self, reason: CloseReason, *, call_budget: timedelta) -> None:
        """End in good order, calls under way within their budget; the first reason stands."""
        if self.reason is not None:
            return
        self.reason = reason
        self._cut(self._waits)
        if self._calls:
            self._timer = asyncio.get_running_loop().call_later(
                call_budget.total_seconds(), lambda: self._cut(self._calls)
            )

    def lose(self) -> None:
        """End at once: the partition belongs to somebody else."""
        self.reason = CloseReason.OWNERSHIP_LOST
        self._cut(self._waits)
        self._cut(self._calls)

    def give_up(self, reason: CloseReason) -> None:
        """End at once, calls under way too, though the partition is still ours."""
        self.reason = self.reason or reason
        self._cut(self._waits)
        self._cut(self._calls)

    def finish(self) -> None:
        """The pump is closed: whoever still holds its context may not act by it any more."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    def check(self) -> None:
        """Raise ``EndedError`` if the pump has to end."""
        if self.reason is not None:
            raise EndedError

    def waiting(self) -> "Waiting":
        """Wait for something inside; ``EndedError`` comes out when the pump has to end."""
        return Waiting(self, self._waits)

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[asyncio.Timeout]:
        """Call the handler inside, while the lease is trusted.

        ``TimeoutError`` comes out with the yielded scope expired when the call was cut.
        """
        loop = asyncio.get_running_loop()
        scope = asyncio.timeout(None)
        async with scope:
            self._calls.add(scope)
            fence = loop.call_later(self._until_look_s, self._enforce_trust, scope)
            try:
                yield scope
            finally:
                fence.cancel()
                self._calls.discard(scope)

    async def until_trusted(self) -> bool:
        """Wait until the lease is trusted; return whether that took any waiting."""
        self.check()
        if self._trust.remaining_s > 0:
            return False
        while self._trust.remaining_s <= 0:
            async with self.waiting():
                await asyncio.sleep(TRUST_POLL_S)
        return True

    @property
    def _until_look_s(self) -> float:
        return min(max(self._trust.remaining_s, TRUST_STEP_S), TRUST_LOOK_S)

    def _enforce_trust(self, scope: asyncio.Timeout) -> None:
        """Cut the call if the trust ran out; else look again when the renewed trust does."""
        if scope not in self._calls:
            return
        loop = asyncio.get_running_loop()
        if self._trust.remaining_s > 0:
            loop.call_later(self._until_look_s, self._enforce_trust, scope)
        else:
            self._cut([scope])

    @staticmethod
    def _cut(scopes: Iterable[asyncio.Timeout]) -> None:
        now_s = asyncio.get_running_loop().time()
        for scope in scopes:
            if not scope.expired():
                scope.reschedule(now_s)


class Waiting:
    """A block that the ending cuts short. Entered several times for each batch, so no generator."""

    __slots__ = ("_ending", "_scope", "_waits")

    def __init__(self, ending: Ending, waits: set[asyncio.Timeout]) -> None:
        """Stand among the waits while it lasts."""
        self._ending = ending
        self._waits = waits
        self._scope = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        """Begin; ``EndedError`` if the pump has to end already."""
        self._ending.check()
        await self._scope.__aenter__()
        self._waits.add(self._scope)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; ``EndedError`` if it was cut."""
        self._waits.discard(self._scope)
        try:
            await self._scope.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise EndedError from None
        if isinstance(error, TimeoutError) and self._scope.expired():
            raise EndedError from None
