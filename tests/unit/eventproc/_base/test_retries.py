"""Waits between attempts are random, and a request is repeated within its limits."""

import asyncio
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.retries import Attempts, Backoff, waits
from eventproc.testing import run_virtual

spans = st.timedeltas(timedelta(milliseconds=1), timedelta(days=1))
backoffs = st.tuples(spans, spans).map(lambda two: Backoff(initial=min(two), maximum=max(two)))


def longest_wait_s(backoff, attempt):
    """Return the longest wait after this failure: doubled each time, up to the maximum."""
    doubled_s = backoff.initial.total_seconds() * 2.0 ** min(attempt - 1, 100)
    return min(doubled_s, backoff.maximum.total_seconds())


@given(backoff=backoffs, attempt=st.integers(1, 10_000))
def test_a_wait_is_between_half_of_the_doubled_wait_and_all_of_it(backoff, attempt):
    """It keeps the maximum, however often something failed."""
    longest_s = longest_wait_s(backoff, attempt)

    assert longest_s / 2 <= waits(backoff)(attempt) <= longest_s


@pytest.mark.parametrize("attempt", [1, 3, 30])
def test_waits_are_spread_over_the_whole_range(attempt):
    """So processors that failed together do not retry together, even at the maximum."""
    backoff = Backoff()
    longest_s = longest_wait_s(backoff, attempt)
    wait_s = waits(backoff, Random(0))
    tenths = {int(20 * wait_s(attempt) / longest_s) for _ in range(1000)}

    assert tenths >= set(range(10, 20))


class Failing:
    """A call that raises *failure_count* times, and then returns."""

    def __init__(self, failure_count, error):
        self.failure_count = failure_count
        self.error = error
        self.call_count = 0

    def __call__(self):
        """Raise or return."""
        self.call_count += 1
        if self.call_count <= self.failure_count:
            raise self.error
        return "answer"

    async def answer(self):
        """Raise or return, as a request does."""
        await asyncio.sleep(0)
        return self()


def test_concurrent_calls_have_all_their_attempts_each():
    """A store has one value for all its requests."""
    attempts = Attempts(3, Backoff(), LookupError)

    async def scenario():
        calls = [Failing(2, LookupError(number)) for number in range(10)]
        answers = await asyncio.gather(*(attempts(each.answer) for each in calls))
        return answers, [each.call_count for each in calls]

    assert run_virtual(scenario()) == (["answer"] * 10, [3] * 10)


async def test_no_attempt_begins_after_the_time_limit():
    """The last error is raised unchanged."""
    tenths = Backoff(initial=timedelta(seconds=0.1), maximum=timedelta(seconds=0.1))
    attempts = Attempts(timedelta(seconds=0.5), tenths, TimeoutError)
    failing = Failing(10**6, TimeoutError("silence"))

    with pytest.raises(TimeoutError, match="silence"):
        await attempts(failing.answer)

    waited_min_s = 0.05 * (failing.call_count - 1)
    assert failing.call_count > 1
    assert waited_min_s < 0.5


async def test_an_error_of_another_kind_is_raised_at_once():
    """It would come again."""
    failing = Failing(1, LookupError("no such hub"))

    with pytest.raises(LookupError, match="hub"):
        await Attempts(timedelta(seconds=10), Backoff(), TimeoutError)(failing.answer)

    assert failing.call_count == 1
