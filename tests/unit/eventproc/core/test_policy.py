"""How long to wait after a failure."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.policy import backoff_s

attempts = st.integers(1, 10_000)
waits = st.timedeltas(timedelta(milliseconds=1), timedelta(days=1))


@given(attempts, waits, waits, st.floats(0, 1))
def test_backoff_doubles_to_the_maximum_and_jitter_takes_up_to_half(
    attempt, wait, other_wait, chance
):
    """With jitter, processors that failed together do not retry together."""
    first, most = sorted([wait, other_wait])
    whole_s = backoff_s(attempt, initial=first, maximum=most, chance=1.0)
    spread_s = backoff_s(attempt, initial=first, maximum=most, chance=chance)
    next_s = backoff_s(attempt + 1, initial=first, maximum=most, chance=1.0)

    assert whole_s <= next_s <= most.total_seconds()
    assert whole_s == min(first.total_seconds() * 2.0 ** min(attempt - 1, 62), most.total_seconds())
    assert whole_s / 2 <= spread_s <= whole_s
