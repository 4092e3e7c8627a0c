"""Delivery counts find a poison event however processes die, with few additional writes."""

from dataclasses import dataclass
from math import isqrt

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.deliveries import (
    ALONE,
    ALONE_COUNT,
    AMONG_MANY,
    IN_PART,
    PART_MIN,
    Isolation,
    deliveries_of,
    first_isolation,
    isolation_after,
    isolation_for,
    mark_after_progress,
    mark_at_rest,
)


@dataclass
class Stored:
    """The stored checkpoint, and how many delivery counts were written into it."""

    position: int = -1
    mark: int = 0
    mark_count: int = 0


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
    isolation = first_isolation(stored.mark, count - 1)
    position, mark, covered, delivered = stored.position, stored.mark, 0.0, 0
    if deliveries_of(mark) >= deliveries_max:
        return f"gave up {position + 1}"
    while position < count - 1:
        if delivered >= run.ends_after:
            stored.position, stored.mark = (
                position,
                mark_at_rest(isolation_for(isolation, position + 1)),
            )
            return "stopped"
        before, isolation = isolation, isolation_for(isolation, position + 1)
        if isolation.mark != before.mark or covered <= 0:
            mark, covered = isolation.mark, isolation.events_max
            stored.position, stored.mark = position, mark
            stored.mark_count += 1
        size = int(min(run.batch_size, covered, count - 1 - position))
        assert size > 0, "a delivery count covers at least one event"
        covered -= size
        for number in range(position + 1, position + 1 + size):
            if number == poison:
                return "died"
            position, mark = number, mark_after_progress(mark)
            if run.own_checkpoint_every and number % run.own_checkpoint_every == 0:
                stored.position, stored.mark = position, mark
        isolation = isolation_after(isolation, size)
        delivered += size
    stored.position, stored.mark = position, mark_at_rest(isolation_for(isolation, count))
    return "finished"


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
def test_an_unclean_end_costs_few_writes_of_delivery_counts(count, run):
    """Twice the square root of the events that follow, or one for each of the smallest parts."""
    stored = Stored(mark=AMONG_MANY)
    run.ends_after = 10**9
    serve(stored, run, poison=-1, count=count, deliveries_max=5)

    assert stored.mark_count <= count // PART_MIN + 2
    assert stored.mark_count <= PART_MIN + 2 * isqrt(count) + 2
    assert stored.mark == 0


@given(st.integers(2, 10), st.integers(101, 2000), RUNS)
def test_after_a_death_in_a_part_one_part_is_delivered_event_by_event(mark, count, run):
    """Then parts grow again: the death had another reason, or the poison event was passed."""
    stored = Stored(mark=mark)
    run.ends_after = 10**9
    serve(stored, run, poison=-1, count=count, deliveries_max=50)

    assert stored.mark_count <= ALONE_COUNT + count // PART_MIN + 3


@given(st.integers(0, 10), st.integers(-1, 100), st.integers(-1, 100))
def test_delivery_counts_rise_only_by_a_death(found, number, last):
    """Neither successful deliveries nor a clean stop raise the stored mark."""
    isolation = first_isolation(found, last)
    later = isolation_for(isolation_after(isolation, 1), number)

    assert later.mark <= max(isolation.mark, ALONE)
    assert mark_at_rest(later) <= IN_PART
    assert mark_at_rest(isolation) <= max(0, found)
    assert mark_after_progress(isolation.mark) <= IN_PART


def test_only_an_event_delivered_alone_counts_more_than_one_delivery():
    """Deliveries among other events count as one, however many there were."""
    assert [deliveries_of(mark) for mark in range(6)] == [0, 1, 1, 2, 3, 4]
    assert Isolation(mark=ALONE).events_max == 1


def test_an_event_after_one_that_was_delivered_alone_counts_from_the_beginning():
    """No process died with it yet, however often one died with the event before."""
    isolation = isolation_for(first_isolation(ALONE + 3, 9), 4)
    following = isolation_for(isolation_after(isolation, 1), 5)

    assert (isolation.mark, following.mark) == (ALONE + 4, ALONE)
