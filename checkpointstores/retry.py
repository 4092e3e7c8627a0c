"""How the stores repeat single requests.

The limit is a number of attempts and not a time, because the callers repeat their calls
periodically.
"""

from datetime import timedelta
from typing import Final

from eventproc.config import Backoff
from eventproc.errors import StoreUnavailableError
from eventproc.retries import Attempts

ATTEMPTS: Final = 3

retried: Final = Attempts(
    ATTEMPTS,
    Backoff(initial=timedelta(milliseconds=100), maximum=timedelta(seconds=1)),
    StoreUnavailableError,
)
"""``await retried(call, ...)`` awaits the call up to three times."""
