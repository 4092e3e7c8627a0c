"""How the stores repeat requests."""

import pytest

from checkpointstores._requests import ATTEMPTS, retried
from eventproc.errors import StoreCorruptError, StoreUnavailableError


class Failing:
    """A call that fails *failures* times, and then returns."""

    def __init__(self, failures, error):
        self.failures = failures
        self.error = error
        self.calls = 0

    async def __call__(self):
        """Fail or return."""
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "answer"


async def test_a_call_is_repeated_until_it_succeeds():
    """Up to the last of three attempts."""
    assert ATTEMPTS == 3
    call = Failing(ATTEMPTS - 1, StoreUnavailableError("no answer"))

    assert await retried(call) == "answer"
    assert call.calls == ATTEMPTS


async def test_the_last_error_is_raised_unchanged():
    """Not wrapped into another error."""
    call = Failing(ATTEMPTS, StoreUnavailableError("no answer"))
    with pytest.raises(StoreUnavailableError, match="no answer"):
        await retried(call)

    assert call.calls == ATTEMPTS


async def test_a_refusal_is_not_repeated():
    """It would only be refused again."""
    call = Failing(1, StoreCorruptError("refused"))
    with pytest.raises(StoreCorruptError):
        await retried(call)

    assert call.calls == 1
