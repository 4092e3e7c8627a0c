"""Which event failed in a call, and which events to deliver next."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.failure import FailureReport, RetryState, blame, next_part
from tests.unit.eventproc.core.events import event, events, numbers


def test_suspected_events_are_delivered_alone_and_the_others_together():
    """The order stays the same: a part ends before the next suspected event."""
    pending = [event(n) for n in range(6)]

    assert numbers(next_part(pending, ())) == [0, 1, 2, 3, 4, 5]
    assert numbers(next_part(pending, {2, 4})) == [0, 1]
    assert numbers(next_part(pending[2:], {2, 4})) == [2]
    assert numbers(next_part(pending[3:], {2, 4})) == [3]


def test_only_a_failed_call_with_one_event_counts_as_an_attempt():
    """A failed call with several events does not count, nor does a retryable error."""
    retries, pending = RetryState(), events([1, 2])
    retries.note(blame(pending, ValueError()), ())
    retries.note(blame(pending[:1], ConnectionError()), (ConnectionError,))

    assert retries.exhausted(pending, 1) == []
    assert retries.alone == {1, 2}
    retries.note(blame(pending[:1], ValueError()), (ConnectionError,))
    assert numbers(retries.exhausted(pending, 1)) == [1]
    assert retries.exhausted(pending, 2) == []
    assert retries.exhausted(pending, None) == []
    assert retries.exhausted(pending[1:], 1) == []
    assert retries.failures_in_row == 3


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
        part = next_part(pending, retries.alone)
        failed = [e.sequence_number for e in part if e.sequence_number in poison]
        if names_failed:
            deliveries.update(numbers(part))
            report = FailureReport(
                failed=dict.fromkeys(failed, ValueError()),
                done=frozenset(set(numbers(part)) - set(failed)),
            )
        else:
            touched = numbers(part) if not failed else [n for n in numbers(part) if n <= failed[0]]
            deliveries.update(touched)
            done = frozenset() if failed else frozenset(numbers(part))
            report = blame(part, ValueError()) if failed else FailureReport(failed={}, done=done)
        retries.note(report, ())
        handled |= report.done
        pending = [e for e in pending if e.sequence_number not in report.done]
        given_up |= set(numbers(retries.exhausted(pending, attempts_max)))
        pending = [e for e in pending if e.sequence_number not in given_up]

    good = set(range(count)) - poison
    assert handled == good
    assert given_up == poison & set(range(count))
    assert all(deliveries[n] <= (1 if names_failed else 2) for n in good)
    assert all(deliveries[n] <= attempts_max + (0 if names_failed else 1) for n in given_up)
