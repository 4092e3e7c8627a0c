"""The events above a position: which of them are done, and what that costs."""

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.window import Window, above, frozen
from tests.unit.eventproc._core.batches import CountingBatch
from tests.unit.eventproc._core.events import event, events, numbers

MANY = 10_000
FEW = 500
"""Far more events than a search through ``MANY`` reads."""


@pytest.fixture
def batch() -> CountingBatch:
    """Many events with gaps between their numbers, which are even."""
    return CountingBatch(events(range(0, 2 * MANY, 2)))


def window_of(*runs) -> Window:
    """A window with these runs of events."""
    window = Window()
    for run in runs:
        window.add(run)
    return window


def test_a_batch_passes_without_a_look_at_each_event(batch):
    """Whole, or up to an event."""
    window = window_of(batch)

    assert window.drop_first(batch[:4000])
    assert window.drop_through(2 * 5000) == 1001
    assert not window.drop_first(batch[:10])
    assert window.drop_first(batch[5001:])
    assert (len(window), window.unfinished_count) == (0, 0)
    assert len(batch.made) < FEW


def test_parts_of_a_batch_are_done_without_a_look_at_each_event(batch):
    """As after an error that names the rows 10 and 9,000: what is left are these two."""
    window = window_of(batch)
    for part in (batch[:10], batch[11:9000], batch[9001:]):
        assert window.mark_done(part) == len(part)
        assert window.mark_done(part) == 0

    assert (len(window), window.unfinished_count, window.is_held) == (MANY, 2, True)
    assert [len(batch[:10]), window.has_done(20), window.has_done(22)] == [10, False, True]
    assert numbers(window.not_done(batch)) == [20, 18000]
    last = window.drop_done()
    assert last is not None
    assert last.sequence_number == 18
    assert len(batch.made) < FEW


def test_what_is_left_of_a_batch_is_a_slice_of_it(batch):
    """So columns can be built from it without an object for each event."""
    window = window_of(batch)
    window.mark_done(batch[:7000])
    left = window.not_done(batch)

    assert isinstance(left, CountingBatch)
    assert len(left) == 3000
    assert isinstance(above(batch, 2 * 7000), CountingBatch)


def test_a_batch_stays_a_batch_and_a_list_becomes_a_tuple(batch):
    """A handler might modify a list."""
    given_events = events([1, 2])

    assert frozen(batch) is batch
    assert frozen(given_events) == tuple(given_events)
    assert frozen(frozen(given_events)) == tuple(given_events)


@st.composite
def windows(draw):
    """Draw runs of events with gaps, and things that happen to them."""
    steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=60))
    found = [sum(steps[: i + 1]) for i in range(len(steps))]
    cuts = draw(st.sets(st.integers(1, len(found) - 1))) if len(found) > 1 else set()
    bounds = [0, *sorted(cuts), len(found)]
    runs = [found[a:b] for a, b in pairwise(bounds)]
    some = st.sets(st.sampled_from(found)).map(sorted)
    part = st.tuples(st.integers(0, len(found)), st.integers(0, len(found))).map(
        lambda ends: found[min(ends) : max(ends)]
    )
    happenings = st.tuples(
        st.sampled_from(["done", "before", "first", "through", "rise"]), some | part
    )
    return runs, draw(st.lists(happenings, max_size=12))


@given(windows(), st.sampled_from([list, tuple, CountingBatch]))
def test_a_window_is_a_list_of_events_of_which_some_are_done(history, kind):
    """Compared with exactly that."""
    runs, happenings = history
    window = window_of(*(frozen(kind(events(run))) for run in runs))
    left = [number for run in runs for number in run]
    own: set[int] = set()
    former: set[int] = set()
    for what, chosen in happenings:
        done = own | former
        given_events = kind(events(chosen))
        if what == "done":
            assert window.mark_done(given_events) == len(set(chosen) & set(left) - done)
            own |= set(chosen) & set(left)
            former -= own
        elif what == "before":
            new = set(chosen) & set(left) - done
            assert window.mark_done(kind(events(sorted(new))), before=True) == len(new)
            former |= new
        elif what == "first" and chosen:
            is_first = left[: len(chosen)] == chosen and any(set(chosen) <= set(r) for r in runs)
            is_first = is_first and not done & set(chosen)
            assert window.drop_first(given_events) == is_first
            left = left[len(chosen) :] if is_first else left
        elif what == "through" and chosen:
            assert window.drop_through(chosen[0]) == sum(n <= chosen[0] for n in left)
            left = [n for n in left if n > chosen[0]]
        elif what == "rise":
            head = next((i for i, n in enumerate(left) if n not in done), len(left))
            last = window.drop_done()
            assert (None if last is None else last.sequence_number) == (
                left[head - 1] if head else None
            )
            left = left[head:]
        own, former = own & set(left), former & set(left)
        done = own | former
        waiting = [n for n in left if n not in done]

        assert len(window) == len(left)
        assert (window.done_count, window.unfinished_count) == (len(done), len(waiting))
        assert numbers(window.not_done(kind(events(left)))) == waiting
        assert all(window.has_done(n) == (n in done) for n in left)
        assert window.is_held == any(n > waiting[0] for n in own if waiting)
        expected = [
            (group[0], group[-1])
            for is_done, found in groupby(left, done.__contains__)
            if is_done and (group := list(found))
        ]
        assert [(r.first, r.last) for r in window.done_ranges()] == expected


def test_a_single_event_is_found_by_its_number_where_numbers_have_gaps():
    """A compacted topic leaves numbers out."""
    window = window_of(events([1, 50, 900]), events([950]))
    window.mark_done([event(50)])

    assert [n for n in (1, 50, 900, 920, 950, 960) if window.has_done(n)] == [50]


def test_a_copy_is_independent():
    """It shows what a commit would make done; if that fails, nothing is."""
    window = Window()
    window.add([event(1), event(2), event(3)])
    window.mark_done([event(3)])
    trial = window.copied()
    trial.mark_done([event(2)])
    window.mark_done([event(1)])

    assert [n for n in (1, 2, 3) if window.has_done(n)] == [1, 3]
    assert [n for n in (1, 2, 3) if trial.has_done(n)] == [2, 3]
