"""Key lanes: order within a key, and a position that never passes what is unfinished."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from eventproc.core.key_queues import KeyQueues, Watermark
from eventproc.models import SequenceRange


def finished(watermark: Watermark[str], numbers, ranges_max: int = 1000):
    """Finish these events; return the position and what is done above it."""
    watermark.complete(numbers)
    above = [(found.first, found.last) for found in watermark.completed(ranges_max)]
    return watermark.sequence_number, above


def filled(numbers, **settings) -> Watermark[str]:
    """A watermark to which these events were admitted."""
    watermark: Watermark[str] = Watermark(**settings)
    for number in numbers:
        watermark.admit(number, f"o{number}")
    return watermark


def test_the_position_waits_for_the_slowest_event():
    """What is done above it is told beside it, and joins it in the end."""
    watermark = filled(range(6))

    assert finished(watermark, [1, 3, 4]) == (None, [(1, 1), (3, 4)])
    assert finished(watermark, [0]) == (1, [(3, 4)])
    assert watermark.mark == "o1"
    assert finished(watermark, [2]) == (4, [])
    assert (watermark.window_size, watermark.unfinished_count) == (1, 1)


def test_a_restart_skips_exactly_what_was_done():
    """Ranges may lie beyond what came by already, and are told until it did."""
    restored = [SequenceRange(first=4, last=5), SequenceRange(first=8, last=9)]
    watermark: Watermark[str] = Watermark(2, restored)
    wanted = [n for n in range(1, 8) if watermark.admit(n, "")]

    assert wanted == [3, 6, 7]
    assert finished(watermark, [6, 7]) == (2, [(4, 7), (8, 9)])
    assert finished(watermark, [3]) == (7, [(8, 9)])


def test_gaps_between_numbers_do_not_matter():
    """A hub may leave numbers out."""
    watermark = filled([10, 20, 30, 40])

    assert finished(watermark, [20, 30]) == (None, [(20, 30)])
    assert finished(watermark, [10]) == (30, [])


def test_the_bound_keeps_the_lowest_ranges():
    """What is not told is handled again; it is never told wrongly."""
    watermark = filled(range(20))

    assert finished(watermark, range(1, 20, 2), ranges_max=3)[1] == [(1, 1), (3, 3), (5, 5)]


@st.composite
def histories(draw):
    """Events with gaps, what was done before, and the order in which they are finished."""
    steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=40))
    numbers = [sum(steps[: i + 1]) for i in range(len(steps))]
    before = draw(st.sets(st.sampled_from(numbers)))
    order = draw(st.permutations(numbers))
    return numbers, before, order[: draw(st.integers(0, len(order)))]


def covered(number: int, ranges) -> bool:
    """Whether a range has it."""
    return any(first <= number <= last for first, last in ranges)


@given(histories(), st.integers(1, 6))
def test_no_position_passes_what_is_unfinished_and_no_done_event_is_lost(history, ranges_max):
    """For every order: position and ranges tell exactly what is done, unless cut by the bound."""
    numbers, before, order = history
    restored = [SequenceRange(first=n, last=n) for n in sorted(before)]
    watermark: Watermark[int] = Watermark(0, restored)
    wanted = {n for n in numbers if watermark.admit(n, n)}
    done = set(before)

    assert wanted == set(numbers) - before
    for number in order:
        watermark.complete([number])
        done.add(number)
        position = watermark.sequence_number or 0
        every = [(found.first, found.last) for found in watermark.completed(1000)]
        cut = [(found.first, found.last) for found in watermark.completed(ranges_max)]
        told = {n for n in numbers if n <= position or covered(n, every)}

        assert told == done
        assert cut == every[:ranges_max]
        assert all(first > position for first, _ in every)
        assert all(a[1] < b[0] for a, b in pairwise(every))
        assert watermark.unfinished_count == len(set(numbers) - done)


@given(histories())
def test_crash_after_crash_handles_every_event_once(history):
    """Whoever begins from what the last one told is given the rest, and nothing twice."""
    numbers, before, order = history
    watermark: Watermark[int] = Watermark(0, [SequenceRange(first=n, last=n) for n in before])
    handled = set(before)
    for cut in (order[: len(order) // 2], order[len(order) // 2 :], numbers):
        wanted = [n for n in numbers if watermark.admit(n, n)]

        assert not handled & set(wanted)
        finished_now = [n for n in cut if n in wanted]
        watermark.complete(finished_now)
        handled |= set(finished_now)
        watermark = Watermark(watermark.sequence_number, watermark.completed(1000))
    assert handled == set(numbers)


def test_a_key_waits_for_its_own_events_only():
    """Two keys go out at once; what comes for a key that is out waits, whoever came first."""
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
def test_no_key_is_out_twice_and_each_keeps_its_order(steps, events_max, random):
    """However adding, taking and coming back alternate."""
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
