"""Which events follow a failed call of the handler, and the death of a process."""

from collections import Counter
from dataclasses import dataclass
from math import ceil, isqrt, log2

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.failure import (
    ALONE_COUNT,
    PART_MIN,
    FailureReport,
    PoisonSearch,
    RetryState,
    blame,
    deliveries_of,
    first_search,
    isolation_after_progress,
    isolation_at_rest,
    next_part,
    search_after,
    search_for,
)
from eventproc.models import ALONE, IN_BATCH, IN_PART, NOT_BEGUN, Isolation, alone
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
    waits = [retries.note(blame(pending[:count], ValueError()), ()) for count in (8, 4, 2, 1, 1, 1)]

    assert waits == [1, 0, 0, 2, 3, 4]
    retries.note_progress()
    assert retries.note(blame(pending[1:2], ValueError()), ()) == 1


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


@dataclass
class Stored:
    """The stored checkpoint, and how many isolations were written into it."""

    position: int = -1
    isolation: Isolation = NOT_BEGUN
    write_count: int = 0


@dataclass
class ProcessRun:
    """How one process behaves: drawn at random, the same for each batch."""

    batch_size: int
    own_checkpoint_every: int
    """The handler checkpoints after every so many events; 0: never."""

    ends_after: int
    """The process stops cleanly after so many events."""


def serve(stored: Stored, run: ProcessRun, poison: int, count: int, deliveries_max: int) -> str:
    """Let one process serve the partition as ``CrashGuard`` would; return how that ended."""
    search = first_search(stored.isolation, count - 1)
    position, isolation, covered, delivered = stored.position, stored.isolation, 0.0, 0
    if deliveries_of(isolation) >= deliveries_max:
        return f"gave up {position + 1}"
    while position < count - 1:
        if delivered >= run.ends_after:
            stored.position, stored.isolation = (
                position,
                isolation_at_rest(search_for(search, position + 1)),
            )
            return "stopped"
        before, search = search, search_for(search, position + 1)
        if search.isolation != before.isolation or covered <= 0:
            isolation, covered = search.isolation, search.events_max
            stored.position, stored.isolation = position, isolation
            stored.write_count += 1
        size = int(min(run.batch_size, covered, count - 1 - position))
        assert size > 0, "an isolation covers at least one event"
        covered -= size
        for number in range(position + 1, position + 1 + size):
            if number == poison:
                return "died"
            position, isolation = number, isolation_after_progress(isolation)
            if run.own_checkpoint_every and number % run.own_checkpoint_every == 0:
                stored.position, stored.isolation = position, isolation
        search = search_after(search, size)
        delivered += size
    stored.position, stored.isolation = position, isolation_at_rest(search_for(search, count))
    return "finished"


LADDER = [NOT_BEGUN, IN_BATCH, IN_PART, *map(alone, range(1, 9))]
"""Each isolation, as processes die with the events, one after the other."""

RUNS = st.builds(
    ProcessRun,
    batch_size=st.integers(1, 300),
    own_checkpoint_every=st.integers(0, 20),
    ends_after=st.just(10**9) | st.integers(1, 400),
)


@given(st.data(), st.integers(1, 3000), st.integers(3, 6))
def test_only_the_poison_event_is_given_up(data, count, deliveries_max):
    """After ``deliveries_max`` deaths, plus one, plus one for each clean stop among them."""
    poison = data.draw(st.integers(0, count - 1))
    stored = Stored()
    results: list[str] = []
    for number in range(80):  # Of the first 30 processes each may stop and so allow one more death.
        run = data.draw(RUNS) if number < 30 else ProcessRun(300, 0, 10**9)
        results.append(serve(stored, run, poison, count, deliveries_max))
        if results[-1].startswith(("gave up", "finished")):
            break

    stops_between = sum(result == "stopped" for result in results)

    assert results[-1] == f"gave up {poison}"
    assert results.count("died") <= deliveries_max + 1 + stops_between


@given(st.integers(0, 50_000), RUNS)
def test_an_unclean_end_costs_few_writes_of_isolations(count, run):
    """Twice the square root of the events that follow, or one for each of the smallest parts."""
    stored = Stored(isolation=IN_BATCH)
    run.ends_after = 10**9
    serve(stored, run, poison=-1, count=count, deliveries_max=5)

    assert stored.write_count <= count // PART_MIN + 2
    assert stored.write_count <= PART_MIN + 2 * isqrt(count) + 2
    assert stored.isolation == NOT_BEGUN


@given(st.sampled_from(LADDER[2:]), st.integers(101, 2000), RUNS)
def test_after_a_death_in_a_part_one_part_is_delivered_event_by_event(isolation, count, run):
    """Then parts grow again: the death had another reason, or the poison event was passed."""
    stored = Stored(isolation=isolation)
    run.ends_after = 10**9
    serve(stored, run, poison=-1, count=count, deliveries_max=50)

    assert stored.write_count <= ALONE_COUNT + count // PART_MIN + 3


@given(st.sampled_from(LADDER), st.integers(-1, 100), st.integers(-1, 100))
def test_isolations_rise_only_by_a_death(found, number, last):
    """Neither successful deliveries nor a clean stop raise the stored isolation."""
    search = first_search(found, last)
    later = search_for(search_after(search, 1), number)

    assert later.isolation <= max(search.isolation, ALONE)
    assert isolation_at_rest(later) <= IN_PART
    assert isolation_at_rest(search) <= found
    assert isolation_after_progress(search.isolation) <= IN_PART


def test_only_an_event_delivered_alone_counts_more_than_one_delivery():
    """Deliveries among other events count as one, however many there were."""
    assert [deliveries_of(isolation) for isolation in LADDER[:6]] == [0, 1, 1, 2, 3, 4]
    assert PoisonSearch(isolation=ALONE).events_max == 1


def test_an_event_after_one_that_was_delivered_alone_counts_from_the_beginning():
    """No process died with it yet, however often one died with the event before."""
    search = search_for(first_search(alone(4), 9), 4)
    following = search_for(search_after(search, 1), 5)

    assert (search.isolation, following.isolation) == (alone(5), ALONE)
