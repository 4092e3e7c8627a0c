"""Which event failed in a call, and which events to deliver next."""

from collections import Counter
from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.failure import FailureReport, RetryState, blame, next_part
from tests.unit.eventproc._core.batches import CountingBatch
from tests.unit.eventproc._core.events import event, events, numbers


def test_suspected_events_are_delivered_alone_and_the_others_together():
    """The order stays the same: a part ends before the next suspected event."""
    pending = [event(n) for n in range(6)]
    retries = RetryState()

    assert numbers(next_part(pending, retries)) == [0, 1, 2, 3, 4, 5]
    for number in (2, 4):
        retries.note(FailureReport(failed={number: ValueError()}), ())
    assert numbers(next_part(pending, retries)) == [0, 1]
    assert numbers(next_part(pending[2:], retries)) == [2]
    assert numbers(next_part(pending[3:], retries)) == [3]
    assert numbers(next_part(pending[5:], retries)) == [5]


def test_after_a_failed_call_each_event_is_alone():
    """If the error does not say which of them failed."""
    pending, retries = events([1, 2, 3, 4]), RetryState()
    retries.note(blame(pending[:3], ValueError()), ())

    assert [numbers(next_part(pending[i:], retries)) for i in range(4)] == [[1], [2], [3], [4]]


def test_a_failed_call_with_columns_is_halved():
    """And its second half is not joined with later rows."""
    pending, retries = events(range(10)), RetryState(halves=True)
    retries.note(blame(pending[:8], ValueError()), ())
    parts = [numbers(next_part(pending[i:], retries)) for i in (0, 4, 8)]

    assert parts == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_only_a_failed_call_with_one_event_counts_as_an_attempt():
    """A failed call with several events does not count, nor does a retryable error."""
    retries, pending = RetryState(), events([1, 2])
    retries.note(blame(pending, ValueError()), ())
    retries.note(blame(pending[:1], ConnectionError()), (ConnectionError,))

    assert retries.exhausted(pending, 1) == []
    assert numbers(next_part(pending, retries)) == [1]
    retries.note(blame(pending[:1], ValueError()), (ConnectionError,))
    assert numbers(retries.exhausted(pending, 1)) == [1]
    assert retries.exhausted(pending, 2) == []
    assert retries.exhausted(pending, None) == []
    assert retries.exhausted(pending[1:], 1) == []
    assert retries.failures_in_row == 3


def test_events_that_are_not_named_are_done():
    """In parts, without a look at each; events that the call did not have are no matter."""
    batch = CountingBatch(events(range(1000)))
    report = blame(
        batch, ValueError(), failed={10: KeyError(), 5000: KeyError()}, untried=[12, 999]
    )

    assert list(report.failed) == [10]
    assert [numbers(part) for part in report.done] == [
        list(range(10)),
        [11],
        list(range(13, 999)),
    ]
    assert len(batch.made) - sum(map(len, report.done)) < 100


def test_an_error_that_names_only_other_events_names_none():
    """Any event of its call may have failed."""
    pending = events([1, 2])

    assert numbers(blame(pending, ValueError(), failed={7: KeyError()}).suspect) == [1, 2]


def test_the_search_for_a_row_waits_once():
    """Then the row that fails alone waits longer each time."""
    pending, retries = events(range(8)), RetryState(halves=True)
    waits = []
    for count in (8, 4, 2, 1, 1, 1):
        retries.note(blame(pending[:count], ValueError()), ())
        waits.append(retries.wait)

    assert waits == [1, 0, 0, 2, 3, 4]
    retries.note_progress()
    retries.note(blame(pending[1:2], ValueError()), ())
    assert retries.wait == 1


@given(st.integers(1, 40), st.sets(st.integers(0, 39)), st.integers(1, 4), st.booleans())
def test_good_events_are_handled_in_two_deliveries_and_poison_ones_given_up(
    count, poison, attempts_max, names_failed
):
    """In one delivery if the handler names the failed events instead of raising at the first."""
    pending = [event(n) for n in range(count)]
    given_up: set[int] = set()
    handled: set[int] = set()
    retries = RetryState()
    deliveries: Counter[int] = Counter()
    while pending:
        part = next_part(pending, retries)
        failed = [e.sequence_number for e in part if e.sequence_number in poison]
        done: set[int] = set()
        if not failed:
            deliveries.update(numbers(part))
            done = set(numbers(part))
        elif names_failed:
            deliveries.update(numbers(part))
            report = blame(part, ValueError(), failed=dict.fromkeys(failed, ValueError()))
            done = {number for each in report.done for number in numbers(each)}
            retries.note(report, ())
        else:
            deliveries.update(n for n in numbers(part) if n <= failed[0])
            retries.note(blame(part, ValueError()), ())
        handled |= done
        pending = [e for e in pending if e.sequence_number not in done]
        given_up |= set(numbers(retries.exhausted(pending, attempts_max)))
        pending = [e for e in pending if e.sequence_number not in given_up]

    good = set(range(count)) - poison
    assert handled == good
    assert given_up == poison & set(range(count))
    assert all(deliveries[n] <= (1 if names_failed else 2) for n in good)
    assert all(deliveries[n] <= attempts_max + (0 if names_failed else 1) for n in given_up)


@given(
    st.integers(1, 10_000),
    st.lists(st.integers(0, 9_999), max_size=5),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_one_bad_row_among_many_is_found_in_few_calls(count, chosen, attempts_max, outage):
    """Every good row is handled once and in order; a transient outage gives up none."""
    bad = {number for number in chosen if number < count}
    rows = CountingBatch(events(range(count)))
    handled: list[int] = []
    given_up: set[int] = set()
    retries = RetryState(halves=True)
    begin = calls = 0
    while begin < count:
        part = next_part(rows[begin:], retries)
        first, last = begin, begin + len(part) - 1
        calls += 1
        if calls <= outage:
            retries.note(blame(part, ConnectionError()), (ConnectionError,))
        elif any(first <= number <= last for number in bad):
            retries.note(blame(part, ValueError()), (ConnectionError,))
        else:
            handled += range(first, last + 1)
            begin = last + 1
        gone = retries.exhausted(rows[begin:], attempts_max)
        assert len(gone) <= 1
        for each in gone:
            assert each.sequence_number == begin
            given_up.add(begin)
            begin += 1

    assert handled == [number for number in range(count) if number not in bad]
    assert given_up == bad
    assert retries.attempt_by_number.keys() <= bad | {0}
    depth = ceil(log2(count)) if count > 1 else 0
    assert calls <= 1 + outage * (depth + 2) + len(bad) * (2 * depth + attempts_max)
    assert len(rows.made) < 100 * calls + 100
