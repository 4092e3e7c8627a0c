"""Which event failed in a call, and what to try next."""

from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.failure import FailureReport, RetryState, blame, next_part
from eventproc.models import ReceivedEvent


def event(number: int) -> ReceivedEvent:
    """An event of which only the number matters."""
    return ReceivedEvent(
        body=b"", sequence_number=number, offset=str(number), enqueued_time=datetime.now(UTC)
    )


def numbers(events) -> list[int]:
    """Their sequence numbers."""
    return [e.sequence_number for e in events]


def test_suspects_go_alone_and_the_others_together():
    """In order all the same."""
    pending = [event(n) for n in range(6)]

    assert numbers(next_part(pending, ())) == [0, 1, 2, 3, 4, 5]
    assert numbers(next_part(pending, {2, 4})) == [0, 1]
    assert numbers(next_part(pending[2:], {2, 4})) == [2]
    assert numbers(next_part(pending[3:], {2, 4})) == [3]


def test_only_failures_of_its_own_count_against_an_event():
    """Neither those of a call with others, nor those that are nobody's fault."""
    trial = RetryState()
    trial.note(blame([event(1), event(2)], ValueError()), ())
    trial.note(blame([event(1)], ConnectionError()), (ConnectionError,))

    assert trial.exhausted(1) == []
    assert trial.alone == {1, 2}
    trial.note(blame([event(1)], ValueError()), (ConnectionError,))
    assert trial.exhausted(1) == [1]
    assert trial.exhausted(None) == []
    trial.forget([1])
    assert (trial.exhausted(1), trial.alone) == ([], {2})


@given(st.integers(1, 40), st.sets(st.integers(0, 39)), st.integers(1, 4), st.booleans())
def test_every_event_is_settled_and_good_ones_come_twice_at_most(count, poison, most, tells):
    """Whether the handler names the culprits or just raises at the first."""
    pending = [event(n) for n in range(count)]
    given_up: set[int] = set()
    handled: set[int] = set()
    trial = RetryState()
    deliveries: Counter[int] = Counter()
    while pending:
        part = next_part(pending, trial.alone)
        bad = [e.sequence_number for e in part if e.sequence_number in poison]
        if tells:
            deliveries.update(numbers(part))
            verdict = FailureReport(
                failed=dict.fromkeys(bad, ValueError()),
                done=frozenset(set(numbers(part)) - set(bad)),
            )
        else:
            touched = numbers(part) if not bad else [n for n in numbers(part) if n <= bad[0]]
            deliveries.update(touched)
            done = frozenset() if bad else frozenset(numbers(part))
            verdict = blame(part, ValueError()) if bad else FailureReport(failed={}, done=done)
        trial.note(verdict, ())
        exhausted = trial.exhausted(most)
        handled |= verdict.done
        given_up |= set(exhausted)
        settled = verdict.done | set(exhausted)
        trial.forget(settled)
        pending = [e for e in pending if e.sequence_number not in settled]

    good = set(range(count)) - poison
    assert handled == good
    assert given_up == poison & set(range(count))
    assert all(deliveries[n] <= (1 if tells else 2) for n in good)
    assert all(deliveries[n] <= most + (0 if tells else 1) for n in given_up)
