"""A poison event is found whatever the process does, with few additional writes."""

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
    Care,
    care_after,
    care_at_first,
    care_for,
    deliveries_of,
    mark_after_progress,
    mark_at_rest,
)


@dataclass
class Stored:
    """A checkpoint, and what it cost."""

    position: int = -1
    mark: int = 0
    mark_count: int = 0


@dataclass
class Life:
    """What one process does beside handing over: drawn by chance, the same for each batch."""

    batch_size: int
    own_checkpoint_every: int
    """The handler asks for one after so many events; 0: never."""

    ends_after: int
    """In good order, after so many events."""


def live(stored: Stored, life: Life, deadly: int, count: int, deliveries_max: int) -> str:
    """Let one process have the partition; return what became of it, as the shell would do it."""
    care = care_at_first(stored.mark, count - 1)
    position, mark, covered, handed = stored.position, stored.mark, 0.0, 0
    if deliveries_of(mark) >= deliveries_max:
        return f"gave up {position + 1}"
    while position < count - 1:
        if handed >= life.ends_after:
            stored.position, stored.mark = position, mark_at_rest(care_for(care, position + 1))
            return "ended well"
        before, care = care, care_for(care, position + 1)
        if care.mark != before.mark or covered <= 0:
            mark, covered = care.mark, care.events_max
            stored.position, stored.mark = position, mark
            stored.mark_count += 1
        size = int(min(life.batch_size, covered, count - 1 - position))
        covered -= size
        for number in range(position + 1, position + 1 + size):
            if number == deadly:
                return "died"
            position, mark = number, mark_after_progress(mark)
            if life.own_checkpoint_every and number % life.own_checkpoint_every == 0:
                stored.position, stored.mark = position, mark
        care = care_after(care, size)
        handed += size
    stored.position, stored.mark = position, mark_at_rest(care_for(care, count))
    return "through"


LIVES = st.builds(
    Life,
    batch_size=st.integers(1, 300),
    own_checkpoint_every=st.integers(0, 20),
    ends_after=st.just(10**9) | st.integers(1, 400),
)


@given(st.data(), st.integers(1, 3000), st.integers(3, 6))
def test_only_the_poison_event_is_given_up(data, count, deliveries_max):
    """Whatever batches, checkpoints and good ends lie between the deaths, one more at most."""
    deadly = data.draw(st.integers(0, count - 1))
    stored = Stored()
    fates: list[str] = []
    while not (fates and fates[-1].startswith(("gave up", "through"))):
        life = data.draw(LIVES) if len(fates) < 30 else Life(300, 0, 10**9)
        fates.append(live(stored, life, deadly, count, deliveries_max))

    well_in_between = sum(fate == "ended well" for fate in fates)

    assert fates[-1] == f"gave up {deadly}"
    assert fates.count("died") <= deliveries_max + 1 + well_in_between


@given(st.integers(0, 50_000), LIVES)
def test_an_unclean_end_costs_few_marks(count, life):
    """Twice the root of the events that follow, or one for each of the first parts."""
    stored = Stored(mark=AMONG_MANY)
    life.ends_after = 10**9
    live(stored, life, deadly=-1, count=count, deliveries_max=5)

    assert stored.mark_count <= count // PART_MIN + 2
    assert stored.mark_count <= PART_MIN + 2 * isqrt(count) + 2
    assert stored.mark == 0


@given(st.integers(2, 10), st.integers(101, 2000), LIVES)
def test_a_death_in_a_part_costs_one_part_of_single_events(mark, count, life):
    """Then the care becomes less again: the death had another reason, or the culprit is behind."""
    stored = Stored(mark=mark)
    life.ends_after = 10**9
    live(stored, life, deadly=-1, count=count, deliveries_max=50)

    assert stored.mark_count <= ALONE_COUNT + count // PART_MIN + 3


@given(st.integers(0, 10), st.integers(-1, 100), st.integers(-1, 100))
def test_care_only_becomes_more_by_a_death(found, number, last):
    """Nothing that goes well adds to what is known of an event."""
    care = care_at_first(found, last)
    later = care_for(care_after(care, 1), number)

    assert later.mark <= max(care.mark, ALONE)
    assert mark_at_rest(later) <= IN_PART
    assert mark_at_rest(care) <= max(0, found)
    assert mark_after_progress(care.mark) <= IN_PART


def test_only_an_event_that_was_alone_has_more_than_one_delivery():
    """Among others counts once, however often that was."""
    assert [deliveries_of(mark) for mark in range(6)] == [0, 1, 1, 2, 3, 4]
    assert Care(mark=ALONE).events_max == 1
