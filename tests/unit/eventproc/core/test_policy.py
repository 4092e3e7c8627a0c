"""When a checkpoint is due, and how long to wait after a failure."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.policy import backoff_s, checkpoint_due_in_s, has_room

FIVE_SECONDS = timedelta(seconds=5)


@pytest.mark.parametrize(
    ("handled_count", "age_s", "max_events", "every", "uncommitted_max", "expected"),
    [
        (0, 99.0, 10, FIVE_SECONDS, None, None),
        (10, 0.0, 10, FIVE_SECONDS, None, 0.0),
        (11, 0.0, 10, None, None, 0.0),
        (9, 2.0, 10, FIVE_SECONDS, None, 3.0),
        (9, 7.0, 10, FIVE_SECONDS, None, 0.0),
        (9, 7.0, 10, None, None, None),
        (9, 2.0, None, FIVE_SECONDS, None, 3.0),
        (9, 2.0, None, None, None, None),
        (9, 2.0, 20, FIVE_SECONDS, 10, 3.0),
        (10, 2.0, 20, FIVE_SECONDS, 10, 0.0),
        (10, 2.0, None, FIVE_SECONDS, 10, 0.0),
        (10, 2.0, None, None, 10, None),
    ],
)
def test_a_checkpoint_is_due_by_count_or_by_age_whichever_comes_first(
    handled_count, age_s, max_events, every, uncommitted_max, expected
):
    """Never with nothing to write. ``max_uncommitted_events`` bounds all but manual policies."""
    due_in_s = checkpoint_due_in_s(
        handled_count=handled_count,
        oldest_age_s=age_s,
        max_events=max_events,
        interval=every,
        max_uncommitted_events=uncommitted_max,
    )

    assert due_in_s == expected


@pytest.mark.parametrize(
    ("handled_count", "every", "uncommitted_max", "expected"),
    [
        (9, FIVE_SECONDS, 10, True),
        (10, FIVE_SECONDS, 10, False),
        (99, FIVE_SECONDS, None, True),
        (99, None, 10, True),
    ],
)
def test_there_is_room_below_max_uncommitted_events(
    handled_count, every, uncommitted_max, expected
):
    """With a manual policy there always is: no automatic write would ever make room."""
    assert has_room(handled_count, None, every, uncommitted_max) is expected


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
