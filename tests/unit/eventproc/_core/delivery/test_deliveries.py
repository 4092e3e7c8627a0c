"""Delivery counts find a poison event however processes die, with few additional writes."""

from dataclasses import dataclass
from math import isqrt

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.failure import (
    ALONE_COUNT,
    PART_MIN,
    PoisonSearch,
    deliveries_of,
    first_search,
    isolation_after_progress,
    isolation_at_rest,
    search_after,
    search_for,
)
from eventproc.models import ALONE, IN_BATCH, IN_PART, NOT_BEGUN, Isolation, alone


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
