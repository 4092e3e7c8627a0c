"""Repeats what failed, after waits that differ at random: what failed together retries apart.

All waits come from ``Backoff.wait_s``. A pump draws them from its own random numbers, so that a
simulation can repeat them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random, SystemRandom
from typing import ParamSpec, TypeVar

from eventproc.config import Backoff

P = ParamSpec("P")
T = TypeVar("T")


def waits(backoff: Backoff, rng: Random | None = None) -> Callable[[int], float]:
    """Return a function: seconds to wait after the n-th failure in a row, n beginning at 1.

    Chance comes from *rng*, or from a generator of its own.
    """
    chance = (rng or SystemRandom()).random
    return lambda failure_count: backoff.wait_s(failure_count, chance())


@dataclass(frozen=True, slots=True)
class Attempts:
    """``await attempts(call, ...)`` awaits the call, again and again, until there is an answer.

    One value serves any number of calls, also at the same time.
    """

    limit: int | timedelta
    """The most attempts in all; or a time since the first one, before which the last one begins."""

    backoff: Backoff
    """The waits."""

    retried: type[Exception]
    """The call is repeated while it raises this; the last error is raised as it is."""

    async def __call__(
        self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the first answer."""
        now_s = asyncio.get_running_loop().time
        began_s, failure_count = now_s(), 0
        while True:
            try:
                return await call(*args, **kwargs)
            except self.retried:
                failure_count += 1
                wait_s = waits(self.backoff)(failure_count)
                if self._is_last(failure_count, now_s() - began_s + wait_s):
                    raise
            await asyncio.sleep(wait_s)

    def _is_last(self, failure_count: int, next_after_s: float) -> bool:
        if isinstance(self.limit, int):
            return failure_count >= self.limit
        return next_after_s >= self.limit.total_seconds()
