"""The one retry policy of the stores: around a single round trip, and by attempts.

By attempts, not by time: beyond these few the caller's own rhythm is the retry.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Final, TypeVar

from eventproc.config import Backoff
from eventproc.errors import StoreUnavailableError
from eventproc.retries import waits

T = TypeVar("T")

ATTEMPTS: Final = 3

_wait_s = waits(
    Backoff(first=timedelta(milliseconds=100), most=timedelta(seconds=1)),
    Random(),  # noqa: S311 - processors that lost the store together must not come back together
)


async def retried(call: Callable[[], Awaitable[T]]) -> T:
    """Await the call until it answers, a few times at most; then let its last error out."""
    for attempt in range(1, ATTEMPTS):
        try:
            return await call()
        except StoreUnavailableError:
            await asyncio.sleep(_wait_s(attempt))
    return await call()
