"""Key lanes: order within a key, and a position that never passes an unfinished event."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.key_queues import KeyQueues, Watermark
from eventproc.models import SequenceRange


def finished(watermark: Watermark[str], numbers, ranges_max: int = 1000):
    """Complete these events; return the position and the completed ranges above it."""
    watermark.complete(numbers)
    above = [(found.first, found.last) for found in watermark.completed(ranges_max)]
    return watermark.sequence_number, above


def filled(numbers, **settings) -> Watermark[str]:
    """A watermark that has admitted these events."""
    watermark: Watermark[str] = Watermark(**settings)
    for number in numbers:
        watermark.admit(number, f"o{number}")
    return watermark


def test_the_position_waits_for_the_slowest_event():
    """Events completed above it are listed as ranges until the position reaches them."""
    watermark = filled(range(6))

    assert finished(watermark, [1, 3, 4]) == (None, [(1, 1), (3, 4)])
    assert finished(watermark, [0]) == (1, [(3, 4)])
    assert watermark.mark == "o1"
    assert finished(watermark, [2]) == (4, [])
    assert (watermark.window_size, watermark.unfinished_count) == (1, 1)


def test_after_a_restart_events_in_restored_ranges_are_not_admitted():
    """Ranges above the newest event are kept, and stored again, until that is above them."""
    restored = [SequenceRange(first=4, last=5), SequenceRange(first=8, last=9)]
    watermark: Watermark[str] = Watermark(2, restored)
    admitted = [n for n in range(1, 8) if watermark.admit(n, "")]

    assert admitted == [3, 6, 7]
    assert finished(watermark, [6, 7]) == (2, [(4, 7), (8, 9)])
    assert finished(watermark, [3]) == (7, [(8, 9)])


def test_a_range_spans_gaps_between_sequence_numbers():
    """A hub may leave numbers out."""
    watermark = filled([10, 20, 30, 40])

    assert finished(watermark, [20, 30]) == (None, [(20, 30)])
    assert finished(watermark, [10]) == (30, [])


def test_ranges_max_keeps_the_lowest_ranges():
    """Events in the ranges left out are handled again after a restart."""
    watermark = filled(range(20))

    assert finished(watermark, range(1, 20, 2), ranges_max=3)[1] == [(1, 1), (3, 3), (5, 5)]


@st.composite
def histories(draw):
    """Draw events with gaps, those completed before, and an order in which to complete the rest."""
    steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=40))
    numbers = [sum(steps[: i + 1]) for i in range(len(steps))]
    before = draw(st.sets(st.sampled_from(numbers)))
    order = draw(st.permutations(numbers))
    return numbers, before, order[: draw(st.integers(0, len(order)))]


def covered(number: int, ranges) -> bool:
    """Whether one of the ranges contains the number."""
    return any(first <= number <= last for first, last in ranges)


@given(histories(), st.integers(1, 6))
def test_position_and_ranges_cover_exactly_the_completed_events(history, ranges_max):
    """In every order of completion; ``ranges_max`` only shortens the list."""
    numbers, before, order = history
    restored = [SequenceRange(first=n, last=n) for n in sorted(before)]
    watermark: Watermark[int] = Watermark(0, restored)
    admitted = {n for n in numbers if watermark.admit(n, n)}
    done = set(before)

    assert admitted == set(numbers) - before
    for number in order:
        watermark.complete([number])
        done.add(number)
        position = watermark.sequence_number or 0
        every = [(found.first, found.last) for found in watermark.completed(1000)]
        cut = [(found.first, found.last) for found in watermark.completed(ranges_max)]
        covered_numbers = {n for n in numbers if n <= position or covered(n, every)}

        assert covered_numbers == done
        assert cut == every[:ranges_max]
        assert all(first > position for first, _ in every)
        assert all(a[1] < b[0] for a, b in pairwise(every))
        assert watermark.unfinished_count == len(set(numbers) - done)


@given(histories())
def test_events_are_handled_once_over_several_restarts(history):
    """Each process restores the position and ranges of the one before, and admits the rest."""
    numbers, before, order = history
    watermark: Watermark[int] = Watermark(0, [SequenceRange(first=n, last=n) for n in before])
    handled = set(before)
    for cut in (order[: len(order) // 2], order[len(order) // 2 :], numbers):
        admitted = [n for n in numbers if watermark.admit(n, n)]

        assert not handled & set(admitted)
        finished_now = [n for n in cut if n in admitted]
        watermark.complete(finished_now)
        handled |= set(finished_now)
        watermark = Watermark(watermark.sequence_number, watermark.completed(1000))
    assert handled == set(numbers)


def test_a_key_waits_only_for_its_own_events():
    """Two keys are taken at once; new events of a taken key wait until it is given back."""
    queues: KeyQueues[str] = KeyQueues()
    for event in ("a1", "a2", "b1", "a3", "b2"):
        queues.add(event[0], event)

    assert queues.take(2) == ("a", ["a1", "a2"])
    assert queues.take(9) == ("b", ["b1", "b2"])
    assert not queues
    queues.add("b", "b3")
    assert not queues
    queues.back("b")
    queues.back("a")
    assert queues.take(9) == ("b", ["b3"])
    assert queues.take(9) == ("a", ["a3"])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=60),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_a_key_is_not_taken_twice_at_once_and_keeps_its_order(steps, events_max, random):
    """However adding, taking and giving back alternate."""
    queues: KeyQueues[int] = KeyQueues()
    out: list[str] = []
    added: dict[str, list[int]] = {key: [] for key in "abc"}
    taken: dict[str, list[int]] = {key: [] for key in "abc"}

    def take() -> None:
        key, events = queues.take(events_max)
        assert key not in out
        assert 0 < len(events) <= events_max
        out.append(str(key))
        taken[str(key)] += events

    for number, (key, what) in enumerate(steps):
        if what < 2:
            queues.add(key, number)
            added[key].append(number)
        elif what == 2 and queues:
            take()
        elif out:
            queues.back(out.pop(random.randrange(len(out))))
    while queues or out:
        if queues:
            take()
        else:
            queues.back(out.pop())

    assert taken == added
