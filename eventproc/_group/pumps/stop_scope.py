"""Ends the waits and handler calls of a pump when it stops or when its lease is not trusted.

Rule 1: when the pump stops, waits end at once. Handler calls under way (with key lanes there may be
several) may finish until one budget for all of them is over. If the partition is lost, they are
cancelled at once.
Rule 2: a call that lasts longer than the trust in the lease is cancelled, and the pump continues.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from types import TracebackType
from typing import Final, Protocol, Self, cast

from eventproc._base.tasks import is_cancelled
from eventproc.models import CloseReason

TRUST_POLL_S: Final = 0.05
"""How often a pump checks whether a lease that is not trusted was renewed."""

TRUST_CHECK_MAX_S: Final = 1.0
"""The longest time between two checks of the lease during a call: timers do not count the time in
which the machine is suspended, and the lease does."""

TRUST_CHECK_MIN_S: Final = 0.001
"""The shortest time between two checks: in a shorter one, a coarse clock may not advance."""


class StoppedError(Exception):
    """The pump is stopping, so a wait or call in it ended. Never leaves the pump."""


class PartitionStoppedError(Exception):
    """The pump has to close because of an error, for this reason. Never leaves the pump."""

    def __init__(self, reason: CloseReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Interruptible(Protocol):
    """A wait or a call that the scope may end."""

    def interrupt(self) -> None:
        """Cancel it, if that was not done before."""


class StopScope:
    """Holds whether, and why, a pump stops, and cancels its waits and calls then."""

    def __init__(self, remaining_s: Callable[[], float]) -> None:
        """Begin; *remaining_s* returns for how long the lease is trusted: zero or less, not."""
        self._remaining_s = remaining_s
        # Not sets: the order of a set follows from addresses, and simulated worlds must repeat.
        self._waits: dict[Interruptible, None] = {}
        self._calls: dict[Interruptible, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._trust_timer: asyncio.TimerHandle | None = None
        """Set while a call may be under way."""

        self._is_over = False
        self.reason: CloseReason | None = None

    @property
    def is_lost(self) -> bool:
        """Whether another processor owns the partition."""
        return self.reason is CloseReason.OWNERSHIP_LOST

    @property
    def is_ending(self) -> bool:
        """Whether the pump stops although this processor owns the partition."""
        return self.reason is not None and not self.is_lost

    @property
    def is_trusted(self) -> bool:
        """Whether the handler may act on the partition now."""
        return self.remaining_s() > 0

    def remaining_s(self) -> float:
        """Return for how many seconds the handler may act; zero or less: it may not."""
        return 0.0 if self.is_lost or self._is_over else self._remaining_s()

    @property
    def is_waiting_for_trust(self) -> bool:
        """Whether no event may be delivered, because the lease is not trusted."""
        return self._remaining_s() <= 0

    def end(self, reason: CloseReason, *, call_budget: timedelta) -> None:
        """Stop; calls under way may finish within *call_budget*. Ignored if already stopping."""
        if self.reason is not None:
            return
        self.reason = reason
        self._interrupt(self._waits)
        if self._calls:
            self._timer = asyncio.get_running_loop().call_later(
                call_budget.total_seconds(), lambda: self._interrupt(self._calls)
            )

    def lose(self) -> None:
        """Stop at once and cancel calls under way: another processor owns the partition."""
        self.reason = CloseReason.OWNERSHIP_LOST
        self._interrupt(self._waits)
        self._interrupt(self._calls)

    def abort(self, reason: CloseReason) -> None:
        """Stop at once and cancel calls under way, although this processor owns the partition."""
        self.reason = self.reason or reason
        self._interrupt(self._waits)
        self._interrupt(self._calls)

    def conclude(self) -> CloseReason:
        """Return why the pump stops. After this call the pump counts as stopping.

        Without a reason so far, the pump's task was cancelled or an unexpected error ended it.
        Then calls under way in lanes are cancelled at once.
        """
        if self.reason is None:
            self.abort(CloseReason.SHUTDOWN if is_cancelled() else CloseReason.HANDLER_FAILED)
        assert self.reason is not None, "abort has set it"
        return self.reason

    def finish(self) -> None:
        """Note that the pump has closed: its context no longer reports a trusted lease."""
        self._is_over = True
        for timer in (self._timer, self._trust_timer):
            if timer is not None:
                timer.cancel()

    def check(self) -> None:
        """Raise ``StoppedError`` if the pump is stopping."""
        if self.reason is not None:
            raise StoppedError

    def waiting(self) -> "Waiting":
        """Return a context manager for a wait; it raises ``StoppedError`` when the pump stops.

        It does so at once if the pump is stopping already.
        """
        self.check()
        return Waiting(self._waits)

    def calling(self) -> "Calling":
        """Return a context manager for a handler call; it cancels the call without a trusted lease.

        A cancelled call raises ``TimeoutError``, and the timeout of the block has expired. If the
        pump is stopping, this raises ``StoppedError`` before the call, which would have no time
        left.
        """
        if self._trust_timer is None:
            self._check_trust_later()
        return Calling(self, self._calls)

    def begin_call(self, call: Interruptible) -> None:
        """Note a call, to be interrupted when its time is over or the lease is not trusted."""
        self._calls[call] = None
        if self._trust_timer is None:
            self._check_trust_later()

    def end_call(self, call: Interruptible) -> None:
        """Note that the call has ended."""
        del self._calls[call]

    async def until_trusted(self) -> bool:
        """Wait until the lease is trusted; return whether that needed a wait."""
        self.check()
        if self._remaining_s() > 0:
            return False
        while self._remaining_s() <= 0:
            with self.waiting():
                await asyncio.sleep(TRUST_POLL_S)
        return True

    @property
    def _until_check_s(self) -> float:
        return min(max(self._remaining_s(), TRUST_CHECK_MIN_S), TRUST_CHECK_MAX_S)

    def _check_trust_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._trust_timer = loop.call_later(self._until_check_s, self._enforce_trust)

    def _enforce_trust(self) -> None:
        """Cancel the calls under way if the lease is not trusted; otherwise check again later.

        One timer serves all calls. A call that begins later needs no earlier check: until it is
        lost, a lease only becomes longer.
        """
        self._trust_timer = None
        if self._calls and self._remaining_s() > 0:
            self._check_trust_later()
        else:
            self._interrupt(self._calls)

    @staticmethod
    def _interrupt(blocks: Iterable[Interruptible]) -> None:
        for block in tuple(blocks):
            block.interrupt()


class Calling:
    """A block that the stop scope may cancel."""

    __slots__ = ("_blocks", "_stop_scope", "_timeout")

    def __init__(self, stop_scope: StopScope, blocks: dict[Interruptible, None]) -> None:
        """Prepare a block that is in *blocks* while it runs."""
        self._stop_scope = stop_scope
        self._blocks = blocks
        self._timeout = asyncio.timeout(None)

    async def __aenter__(self) -> asyncio.Timeout:
        """Raise ``StoppedError`` if the pump is stopping already."""
        self._stop_scope.check()
        await self._timeout.__aenter__()
        self._blocks[self] = None
        return self._timeout

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise ``TimeoutError`` if the block was cancelled by the stop scope."""
        del self._blocks[self]
        await self._timeout.__aexit__(kind, error, traceback)

    def interrupt(self) -> None:
        """Cancel the block, if that was not done before."""
        if not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())


class Waiting:
    """A wait that ends when the pump stops: its block raises ``StoppedError`` then.

    An event that comes alone needs one, so it is less than an ``asyncio.Timeout``.
    """

    __slots__ = ("_before", "_is_interrupted", "_task", "_waits")

    def __init__(self, waits: dict[Interruptible, None]) -> None:
        """Prepare a block that is in *waits* while it runs."""
        self._waits = waits
        self._is_interrupted = False

    def __enter__(self) -> Self:
        """Note that the block begins, in this task."""
        self._task = task = cast(asyncio.Task[object], asyncio.current_task())
        self._before = task.cancelling()
        self._waits[self] = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise ``StoppedError`` if the wait was interrupted; a cancellation by others passes."""
        del self._waits[self]
        if not self._is_interrupted:
            return
        is_ours = self._task.uncancel() <= self._before
        if isinstance(error, TimeoutError) or (
            is_ours and isinstance(error, asyncio.CancelledError)
        ):
            raise StoppedError from None

    def interrupt(self) -> None:
        """Cancel the block soon, if that was not done before."""
        # Not at once: the task that calls this may be the one that is in the block.
        asyncio.get_running_loop().call_soon(self._cancel)

    def _cancel(self) -> None:
        if not self._is_interrupted and self in self._waits:
            self._is_interrupted = True
            self._task.cancel()
