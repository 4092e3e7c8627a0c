"""Repeats what failed, after waits that differ at random: what failed together retries apart.

Waits that a pump plans come from ``waits``: they end when the pump stops, on the time of its event
loop and by its own random numbers, so that a simulation can repeat them. A request that is repeated
until it is answered uses ``async_attempts`` or ``attempts_within``, which are loops of tenacity.
"""

from collections.abc import Callable
from datetime import timedelta
from random import Random, SystemRandom

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from eventproc.config import Backoff
from eventproc.core.policy import backoff_s


def waits(backoff: Backoff, rng: Random | None = None) -> Callable[[int], float]:
    """Return a function: seconds to wait after the n-th failure in a row, n beginning at 1.

    Chance comes from *rng*, or from a generator of its own.
    """
    chance = (rng or SystemRandom()).random

    def wait_s(attempt: int) -> float:
        return backoff_s(attempt, initial=backoff.initial, maximum=backoff.maximum, chance=chance())

    return wait_s


def async_attempts(
    limit: int | timedelta, backoff: Backoff, retried: type[Exception]
) -> AsyncRetrying:
    """Return a loop: ``await attempts(call)`` awaits the call until there is an answer.

    *call* must be a coroutine function. It is repeated while it raises *retried*; the last error is
    raised as it is. One loop serves any number of calls, also at the same time.

    Args:
        limit: The most attempts in all; or a time since the first one, before which the last one
            begins.
        backoff: The waits.
        retried: The call is repeated while it raises this.
    """
    return AsyncRetrying(
        wait=_spread(backoff),
        stop=stop_after_attempt(limit) if isinstance(limit, int) else stop_before_delay(limit),
        retry=retry_if_exception_type(retried),
        reraise=True,
    )


def attempts_within(
    patience: timedelta,
    backoff: Backoff,
    retried: tuple[type[Exception], ...],
    *,
    note: Callable[[BaseException], None],
) -> Retrying:
    """Return a loop: ``attempts(call)`` calls until there is an answer, blocking between the calls.

    Args:
        patience: The last call begins before that time has passed since the first.
        backoff: The waits.
        retried: The call is repeated while it raises one of these; the last error is raised as it
            is.
        note: Called with the error before each wait.
    """

    def before_sleep(state: RetryCallState) -> None:
        assert state.outcome is not None, "the call that failed"
        error = state.outcome.exception()
        assert error is not None, "only a call that raised is repeated"
        note(error)

    return Retrying(
        wait=_spread(backoff),
        stop=stop_before_delay(patience),
        retry=retry_if_exception_type(retried),
        before_sleep=before_sleep,
        reraise=True,
    )


def _spread(backoff: Backoff) -> wait_base:
    """Wait as ``backoff_s``: between half of the doubled wait and all of it."""
    half, half_max = backoff.initial.total_seconds() / 2, backoff.maximum / 2
    return wait_exponential(half, half_max) + wait_random_exponential(half, half_max)
