"""Which event failed in a call, and which events to deliver next."""

from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.failure import FailureReport, RetryState, blame, next_part
from eventproc.models import ReceivedEvent


def event(number: int) -> ReceivedEvent:
    """An event with this sequence number."""
    return ReceivedEvent(
        body=b"", sequence_number=number, offset=str(number), enqueued_time=datetime.now(UTC)
    )


def numbers(events) -> list[int]:
    """The sequence numbers of the events."""
    return [e.sequence_number for e in events]


def test_suspected_events_are_delivered_alone_and_the_others_together():
    """The order stays the same: a part ends before the next suspected event."""
    pending = [event(n) for n in range(6)]

    assert numbers(next_part(pending, ())) == [0, 1, 2, 3, 4, 5]
    assert numbers(next_part(pending, {2, 4})) == [0, 1]
    assert numbers(next_part(pending[2:], {2, 4})) == [2]
    assert numbers(next_part(pending[3:], {2, 4})) == [3]


def test_only_a_failed_call_with_one_event_counts_as_an_attempt():
    """A failed call with several events does not count, nor does a retryable error."""
    retries = RetryState()
    retries.note(blame([event(1), event(2)], ValueError()), ())
    retries.note(blame([event(1)], ConnectionError()), (ConnectionError,))

    assert retries.exhausted(1) == []
    assert retries.alone == {1, 2}
    retries.note(blame([event(1)], ValueError()), (ConnectionError,))
    assert retries.exhausted(1) == [1]
    assert retries.exhausted(None) == []
    retries.forget([1])
    assert (retries.exhausted(1), retries.alone) == ([], {2})


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
        exhausted = retries.exhausted(attempts_max)
        handled |= report.done
        given_up |= set(exhausted)
        settled = report.done | set(exhausted)
        retries.forget(settled)
        pending = [e for e in pending if e.sequence_number not in settled]

    good = set(range(count)) - poison
    assert handled == good
    assert given_up == poison & set(range(count))
    assert all(deliveries[n] <= (1 if names_failed else 2) for n in good)
    assert all(deliveries[n] <= attempts_max + (0 if names_failed else 1) for n in given_up)
