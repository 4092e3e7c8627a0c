"""Repeats what failed, after waits that differ at random: what failed together retries apart.

All waits come from ``Backoff.wait_s``. A pump draws them from its own random numbers, so that a
simulation can repeat them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random, SystemRandom
from typing import Final, ParamSpec, TypeVar

from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
)

from eventproc._base.settings import PositiveSpan, check_settings, value_text
from eventproc.errors import ConfigurationError

P = ParamSpec("P")
T = TypeVar("T")

DOUBLINGS_MAX: Final = 62
"""A wait is doubled no more often: any maximum is reached by then, and floats are finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits between attempts: ``initial``, then doubled each time, up to ``maximum``."""

    __module__ = "eventproc"

    initial: PositiveSpan = timedelta(milliseconds=100)
    """The wait after the first failure."""

    maximum: PositiveSpan = timedelta(seconds=30)
    """The longest wait. Each wait is shortened at random, by up to half."""

    def __post_init__(self) -> None:
        """Refuse values that are out of bounds, and ``initial`` above ``maximum``."""
        check_settings(self)
        if self.initial > self.maximum:
            raise ConfigurationError(
                "give at most as long",
                setting="initial",
                value=value_text(self.initial),
                beside={"maximum": value_text(self.maximum)},
            )

    def wait_s(self, failure_count: int, chance: float) -> float:
        """Return the seconds to wait after this many failures in a row, from 1.

        *chance* (0 to 1) spreads the wait between half of it and all of it, so that processors
        that failed at the same time do not retry at the same time.
        """
        doublings = min(failure_count - 1, DOUBLINGS_MAX)
        whole_s = min(self.initial.total_seconds() * 2.0**doublings, self.maximum.total_seconds())
        return whole_s * (0.5 + 0.5 * chance)


def failures_in_a_row(before: int, ran_s: float, backoff: Backoff) -> int:
    """Return the count after one more failure of something that ran for a while.

    What ran for longer than the longest wait had started well, so a new row begins.
    """
    return 1 if ran_s >= backoff.maximum.total_seconds() else before + 1


def waits(backoff: Backoff, rng: Random | None = None) -> Callable[[int], float]:
    """Return a function: seconds to wait after the n-th failure in a row, n beginning at 1.

    Chance comes from *rng*, or from a generator of its own.
    """
    chance = (rng or SystemRandom()).random
    return lambda failure_count: backoff.wait_s(failure_count, chance())


class Attempts:
    """``await attempts(call, ...)`` awaits the call, again and again, until there is an answer.

    One value serves any number of calls, also at the same time.
    """

    def __init__(self, limit: int | timedelta, backoff: Backoff, retried: type[Exception]) -> None:
        """Take the rules.

        Args:
            limit: The most attempts in all; or a time since the first one, before which the last
                one begins.
            backoff: The waits.
            retried: The call is repeated while it raises this; the last error is raised as it is.
        """
        wait_s = waits(backoff)
        self._retrying = AsyncRetrying(
            wait=lambda state: wait_s(state.attempt_number),
            stop=stop_after_attempt(limit) if isinstance(limit, int) else stop_before_delay(limit),
            retry=retry_if_exception_type(retried),
            reraise=True,
        )

    async def __call__(
        self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the first answer."""

        async def attempt() -> T:  # tenacity awaits only what is declared with ``async def``
            return await call(*args, **kwargs)

        return await self._retrying(attempt)
