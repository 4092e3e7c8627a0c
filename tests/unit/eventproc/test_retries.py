"""Waits between attempts are random, and a request is repeated within its limits."""

import asyncio
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.config import Backoff
from eventproc.retries import async_attempts, attempts_within, waits
from eventproc.testing import run_virtual

spans = st.timedeltas(timedelta(milliseconds=1), timedelta(days=1))
backoffs = st.tuples(spans, spans).map(lambda two: Backoff(initial=min(two), maximum=max(two)))


def longest_wait_s(backoff, attempt):
    """Return the longest wait after this failure: doubled each time, up to the maximum."""
    return min(backoff.initial.total_seconds() * 2.0**attempt / 2, backoff.maximum.total_seconds())


def planned_s(backoff, attempt):
    """Return a wait that a pump plans."""
    return waits(backoff, Random(attempt))(attempt)


def slept_s(backoff, attempt):
    """Return a wait between two requests."""
    loop = async_attempts(9, backoff, ValueError)
    state: Any = SimpleNamespace(attempt_number=attempt)
    return loop.wait(state)


@pytest.mark.parametrize("wait_s", [planned_s, slept_s])
@given(backoff=backoffs, attempt=st.integers(1, 900))
def test_a_wait_is_between_half_of_the_doubled_wait_and_all_of_it(wait_s, backoff, attempt):
    """Planned waits and those between requests have the same bounds, and keep the maximum."""
    longest_s = longest_wait_s(backoff, attempt)

    assert longest_s / 2 <= wait_s(backoff, attempt) <= longest_s * (1 + 1e-9)


@pytest.mark.parametrize("make", [lambda b: waits(b, Random()), lambda b: lambda n: slept_s(b, n)])
@pytest.mark.parametrize("attempt", [1, 3, 30])
def test_waits_are_spread_over_the_whole_range(make, attempt):
    """So processors that failed together do not retry together, even at the maximum."""
    backoff = Backoff()
    longest_s = longest_wait_s(backoff, attempt)
    tenths = {int(20 * make(backoff)(attempt) / longest_s) for _ in range(1000)}

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


def test_concurrent_calls_have_all_their_attempts_each():
    """A store has one retry loop for all its requests."""
    attempts = async_attempts(3, Backoff(), LookupError)

    async def request(failing):
        async def call():
            await asyncio.sleep(0)
            return failing()

        return await attempts(call)

    async def scenario():
        calls = [Failing(2, LookupError(number)) for number in range(10)]
        return await asyncio.gather(*map(request, calls)), [each.call_count for each in calls]

    assert run_virtual(scenario()) == (["answer"] * 10, [3] * 10)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the waits of a blocking retry loop move."""
    now = SimpleNamespace(s=0.0)

    def sleep(wait_s):
        now.s += wait_s

    monkeypatch.setattr("tenacity.nap.time.sleep", sleep)
    monkeypatch.setattr("tenacity.time.monotonic", lambda: now.s)
    return now


def test_a_request_is_repeated_until_it_succeeds(clock):
    """Each failure is reported with its number before the wait."""
    failures = []
    attempts = attempts_within(
        timedelta(minutes=1),
        Backoff(),
        (LookupError, TimeoutError),
        note=lambda error: failures.append(str(error)),
    )

    assert attempts(Failing(3, TimeoutError("silence"))) == "answer"
    assert failures == ["silence"] * 3
    assert 0.35 <= clock.s <= 0.7


def test_no_attempt_begins_after_the_time_limit(clock):
    """The last error is raised unchanged; an error that is not retryable is raised at once."""
    failing = Failing(10**6, TimeoutError("silence"))
    at_most_1_s = Backoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=1))
    attempts = attempts_within(
        timedelta(seconds=10), at_most_1_s, (TimeoutError,), note=lambda *_: None
    )
    with pytest.raises(TimeoutError, match="silence"):
        attempts(failing)

    assert 9 <= clock.s < 10

    other = Failing(1, LookupError("no such hub"))
    with pytest.raises(LookupError):
        attempts(other)
    assert other.call_count == 1
