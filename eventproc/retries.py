"""How long to wait before the next attempt: tenacity's strategies, asked as values.

Only its waits are used. Its loop and its clock are not: a pump's waits are cut when it has to end,
and run on whatever time its loop has.
"""

from collections.abc import Callable
from random import Random

from tenacity import AsyncRetrying, RetryCallState, wait_exponential

from eventproc.config import Backoff

_RETRYING = AsyncRetrying()
"""A strategy is asked with the state of a call, and that has to belong to something."""


def waits(backoff: Backoff, rng: Random) -> Callable[[int], float]:
    """Return what tells the seconds to wait after the n-th failure in a row, from 1.

    Between half of the strategy's wait and all of it, so that a fleet that failed together does
    not come back together. Chance comes from *rng*: tenacity's own jitter has a global one.
    """
    strategy = wait_exponential(
        multiplier=backoff.first.total_seconds(), max=backoff.most.total_seconds()
    )

    def wait_s(attempt: int) -> float:
        state = RetryCallState(_RETRYING, None, (), {})
        state.attempt_number = attempt
        return strategy(state) * (0.5 + 0.5 * rng.random())

    return wait_s
