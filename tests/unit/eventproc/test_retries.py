"""Waits between attempts differ at random, and requests are repeated as long as they may be."""

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


def whole_s(backoff, attempt):
    """Return the longest wait after this failure: doubled each time, and capped."""
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
    """Planned waits and those between requests have the same bounds, and never exceed the cap."""
    longest_s = whole_s(backoff, attempt)

    assert longest_s / 2 <= wait_s(backoff, attempt) <= longest_s * (1 + 1e-9)


@pytest.mark.parametrize("make", [lambda b: waits(b, Random()), lambda b: lambda n: slept_s(b, n)])
@pytest.mark.parametrize("attempt", [1, 3, 30])
def test_a_fleet_that_failed_together_comes_back_over_the_whole_range(make, attempt):
    """A thousand waits lie in every tenth of the range, also where they are capped."""
    backoff = Backoff()
    longest_s = whole_s(backoff, attempt)
    tenths = {int(20 * make(backoff)(attempt) / longest_s) for _ in range(1000)}

    assert tenths >= set(range(10, 20))


class Failing:
    """A call that raises a few times, then answers."""

    def __init__(self, failure_count, error):
        self.failure_count = failure_count
        self.error = error
        self.call_count = 0

    def __call__(self):
        """Raise or answer."""
        self.call_count += 1
        if self.call_count <= self.failure_count:
            raise self.error
        return "answer"


def test_concurrent_calls_of_one_loop_each_have_all_their_attempts():
    """A store has one loop for all its requests."""
    attempts = async_attempts(3, Backoff(), LookupError)

    async def request(failing):
        async def call():
            await asyncio.sleep(0)
            return failing()

        return await attempts(call)

    async def story():
        calls = [Failing(2, LookupError(number)) for number in range(10)]
        return await asyncio.gather(*map(request, calls)), [each.call_count for each in calls]

    assert run_virtual(story()) == (["answer"] * 10, [3] * 10)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the waits of a blocking loop move."""
    at = SimpleNamespace(s=0.0)

    def sleep(wait_s):
        at.s += wait_s

    monkeypatch.setattr("tenacity.nap.time.sleep", sleep)
    monkeypatch.setattr("tenacity.time.monotonic", lambda: at.s)
    return at


def test_a_request_is_repeated_until_there_is_an_answer(clock):
    """Each failure is noted with its number before the wait."""
    failures = []
    attempts = attempts_within(
        timedelta(minutes=1),
        Backoff(),
        (LookupError, TimeoutError),
        note=lambda attempt, error: failures.append((attempt, str(error))),
    )

    assert attempts(Failing(3, TimeoutError("silence"))) == "answer"
    assert failures == [(1, "silence"), (2, "silence"), (3, "silence")]
    assert 0.35 <= clock.s <= 0.7


def test_no_attempt_begins_after_the_patience_is_over(clock):
    """The last error comes out as it is, and what is not to be retried at once."""
    failing = Failing(10**6, TimeoutError("silence"))
    attempts = attempts_within(
        timedelta(seconds=10), Backoff(), (TimeoutError,), note=lambda *_: None
    )
    with pytest.raises(TimeoutError, match="silence"):
        attempts(failing)

    assert 5 <= clock.s < 10

    other = Failing(1, LookupError("no such hub"))
    with pytest.raises(LookupError):
        attempts(other)
    assert other.call_count == 1
