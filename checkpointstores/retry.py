"""The retry policy of the stores, for single requests.

It is limited by attempts and not by time, because the callers repeat their calls periodically.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

from eventproc.config import Backoff
from eventproc.errors import StoreUnavailableError
from eventproc.retries import async_attempts

T = TypeVar("T")

ATTEMPTS: Final = 3

BACKOFF: Final = Backoff(initial=timedelta(milliseconds=100), maximum=timedelta(seconds=1))

_attempts = async_attempts(ATTEMPTS, BACKOFF, StoreUnavailableError)


async def retried(call: Callable[[], Awaitable[T]]) -> T:
    """Await the call, at most ``ATTEMPTS`` times while it raises ``StoreUnavailableError``."""

    async def attempt() -> T:  # tenacity awaits only what is declared with ``async def``
        return await call()

    return await _attempts(attempt)
