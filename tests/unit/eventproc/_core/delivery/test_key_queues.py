"""Key lanes: which events may be handled at once, and order within a key."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.delivery.key_queues import KeyQueues


def test_a_key_waits_only_for_its_own_events():
    """Two keys are taken at once; new events of a taken key wait until it is given back."""
    queues: KeyQueues[str] = KeyQueues()
    for event in ("a1", "a2", "b1", "a3", "b2"):
        queues.add(event[0], event)

    assert queues.take(2) == ("a", ("a1", "a2"))
    assert queues.take(9) == ("b", ("b1", "b2"))
    assert not queues
    queues.add("b", "b3")
    assert not queues
    queues.finish("b")
    queues.finish("a")
    assert queues.take(9) == ("b", ("b3",))
    assert queues.take(9) == ("a", ("a3",))


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
            queues.finish(out.pop(random.randrange(len(out))))
    while queues or out:
        if queues:
            take()
        else:
            queues.finish(out.pop())

    assert taken == added
