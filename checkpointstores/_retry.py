"""The one retry policy of the stores: around a single round trip, and by attempts.

By attempts, not by time, because tenacity's delays read the real clock whatever loop they run on.
Beyond these few attempts the caller's own rhythm is the retry.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from eventproc.errors import StoreUnavailableError

T = TypeVar("T")

ATTEMPTS: Final = 3
WAIT_FIRST_S: Final = 0.1
WAIT_MAX_S: Final = 1.0


async def retried(call: Callable[[], Awaitable[T]]) -> T:
    """Await the call until it answers, a few times at most; then let its last error out."""
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailableError),
        stop=stop_after_attempt(ATTEMPTS),
        # Full jitter: processors that lost the store together must not come back together.
        wait=wait_random_exponential(multiplier=WAIT_FIRST_S, max=WAIT_MAX_S),
        reraise=True,
    )

    async def once() -> T:
        return await call()

    return await retrying(once)
