"""How the stores of a service repeat single requests. It needs no client of any service.

The limit is a number of attempts and not a time, because the callers repeat their calls
periodically.
"""

from datetime import timedelta
from typing import Final

from eventproc._base.retries import Attempts, Backoff
from eventproc.errors import StoreUnavailableError

retried: Final = Attempts(
    3,
    Backoff(initial=timedelta(milliseconds=100), maximum=timedelta(seconds=1)),
    StoreUnavailableError,
)
"""``await retried(call, ...)`` awaits the call up to three times."""
