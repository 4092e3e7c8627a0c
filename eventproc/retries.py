"""Waits between attempts, computed by tenacity's strategies.

Tenacity's retry loop and clock are not used: a pump's waits end when the pump stops, and they run
on the time of its event loop, which may be virtual.
"""

from collections.abc import Callable
from random import Random

from tenacity import AsyncRetrying, RetryCallState, wait_exponential

from eventproc.config import Backoff

_RETRYING = AsyncRetrying()
"""A strategy takes the state of a call, which must belong to a retrying object."""


def waits(backoff: Backoff, rng: Random) -> Callable[[int], float]:
    """Return a function: seconds to wait after the n-th failure in a row, n beginning at 1.

    The result is between half of the strategy's wait and all of it, so that processors that failed
    together do not retry together. Jitter comes from *rng*; tenacity's own uses a global one.
    """
    strategy = wait_exponential(
        multiplier=backoff.initial.total_seconds(), max=backoff.maximum.total_seconds()
    )

    def wait_s(attempt: int) -> float:
        state = RetryCallState(_RETRYING, None, (), {})
        state.attempt_number = attempt
        return strategy(state) * (0.5 + 0.5 * rng.random())

    return wait_s
