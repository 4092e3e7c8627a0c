"""When a checkpoint is due, and whether more events may be handled before it is written."""

from datetime import timedelta

import pytest

from eventproc._core.delivery.coverage import UncommittedEvents

FIVE_SECONDS = timedelta(seconds=5)
BEGIN_S = 1000.0


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
    uncommitted = UncommittedEvents(
        max_events=max_events, interval=every, max_uncommitted_events=uncommitted_max
    )
    uncommitted.add(handled_count, BEGIN_S)

    assert uncommitted.due_in_s(BEGIN_S + age_s) == expected


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
    uncommitted = UncommittedEvents(
        max_events=None,
        interval=every,
        max_uncommitted_events=uncommitted_max,
        count=handled_count,
    )

    assert uncommitted.has_room is expected


def test_the_age_is_that_of_the_oldest_event():
    """After a checkpoint it counts from then: the events that are left were handled meanwhile."""
    uncommitted = UncommittedEvents(max_events=None, interval=None, max_uncommitted_events=None)
    ages_s = [uncommitted.age_s(1.0)]
    uncommitted.add(2, 2.0)
    uncommitted.add(3, 4.0)
    ages_s.append(uncommitted.age_s(5.0))
    uncommitted.remove(4, 6.0)
    ages_s.append(uncommitted.age_s(8.0))
    uncommitted.remove(1, 9.0)
    ages_s.append(uncommitted.age_s(10.0))

    assert ages_s == [0.0, 3.0, 2.0, 0.0]
