"""The retry policy of the stores, for single requests.

It is limited by attempts and not by time, because the callers repeat their calls periodically.
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
    Backoff(initial=timedelta(milliseconds=100), maximum=timedelta(seconds=1)),
    Random(),  # noqa: S311 - processors that lost the store at the same time retry at other times
)


async def retried(call: Callable[[], Awaitable[T]]) -> T:
    """Await the call, at most ``ATTEMPTS`` times while it raises ``StoreUnavailableError``."""
    for attempt in range(1, ATTEMPTS):
        try:
            return await call()
        except StoreUnavailableError:
            await asyncio.sleep(_wait_s(attempt))
    return await call()
