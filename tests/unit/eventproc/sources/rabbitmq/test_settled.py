"""Which deliveries are acknowledged, and how."""

from hypothesis import given
from hypothesis import strategies as st

from eventproc.models import SequenceRange
from eventproc.sources.rabbitmq._receiver import Settled


def test_a_delivery_tag_counts_from_the_first_delivery_of_the_link():
    """The sequence number goes on over links."""
    settled = Settled(100)

    assert settled.add(104, ()) == (5, [])


def test_nothing_is_acknowledged_twice():
    """The broker closes a channel that does so."""
    settled = Settled(0)

    assert settled.add(4, [SequenceRange(6, 7)]) == (5, [7, 8])
    assert settled.add(4, [SequenceRange(6, 7)]) == (None, [])
    assert settled.add(3, [SequenceRange(6, 9)]) == (None, [9, 10])


def test_numbers_of_a_former_link_are_left_out():
    """Their deliveries have come again, with new ones."""
    settled = Settled(10)

    assert settled.add(9, [SequenceRange(3, 11)]) == (None, [1, 2])
    assert settled.add(5, ()) == (None, [])


def test_all_up_to_a_delivery_does_not_name_one_that_was_acknowledged_alone():
    """The broker does not know its tag any more."""
    settled = Settled(0)
    settled.add(-1, [SequenceRange(1, 3)])

    assert settled.add(3, ()) == (1, [])
    assert settled.add(5, ()) == (6, [])


class FakeChannel:
    """Refuses tags as RabbitMQ does."""

    def __init__(self, count: int) -> None:
        self.pending = set(range(1, count + 1))

    def acknowledge(self, through: int | None, alone: list[int]) -> None:
        for tag in alone:
            self.pending.remove(tag)
        if through is not None:
            self.pending.remove(through)
            self.pending -= set(range(1, through))


@given(st.integers(0, 50), st.lists(st.sets(st.integers(0, 29)), max_size=6))
def test_whatever_is_settled_is_acknowledged_once(first, steps):
    """For any order in which events are done."""
    settled, channel, done = Settled(first), FakeChannel(30), set[int]()
    for step in steps:
        done |= step
        through = next(n for n in range(31) if n not in done) - 1
        ranges = [SequenceRange(first + n, first + n) for n in sorted(done) if n > through]
        channel.acknowledge(*settled.add(first + through, ranges))

        assert channel.pending == {n + 1 for n in range(30) if n not in done}
