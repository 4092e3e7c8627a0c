"""The receiver of a queue, with a fake of the consumer."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import SourceUnavailableError
from eventproc.models import SequenceRange
from eventproc.sources.rabbitmq._receiver import RabbitReceiver, Settled
from eventproc.testing._virtual_time import run_virtual

SOON = timedelta(seconds=1)


def delivery(tag: int) -> Any:
    """Return as much of a message as the receiver reads."""
    return SimpleNamespace(delivery_tag=tag, body=b"x")


class FakeConsumer:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def acknowledge(self, through, single) -> None:
        self.calls.append((through, list(single)))

    async def until_acknowledged(self, timeout_s) -> None:
        self.calls.append(("asked", timeout_s))

    async def stop(self, timeout_s) -> None:
        self.calls.append(("stopped", timeout_s))

    async def close(self, timeout_s) -> None:
        self.calls.append(("closed", timeout_s))


def opened(first: int, count: int) -> tuple[RabbitReceiver, FakeConsumer]:
    """Return a receiver to which so many messages were delivered."""
    receiver, consumer = RabbitReceiver(first, timeout=timedelta(seconds=3)), FakeConsumer()
    receiver.attach(consumer)  # type: ignore[arg-type]
    for number in range(count):
        receiver.deliver(delivery(number + 1))
    return receiver, consumer


async def received(receiver: RabbitReceiver, events_max: int = 100) -> list[int]:
    events = await receiver.receive(events_max=events_max, wait_max=SOON)
    return [event.sequence_number for event in events]


def test_deliveries_are_numbered_from_the_first_one():
    """In the order of their arrival, and at most as many as are wanted."""

    async def scenario():
        receiver, _ = opened(100, 5)
        return await received(receiver, 2), await received(receiver)

    assert run_virtual(scenario()) == ([100, 101], [102, 103, 104])


@pytest.mark.parametrize("wait_s", [0, 1, 2.5])
def test_an_empty_queue_is_waited_for_as_long_as_wanted(wait_s):
    """Also after messages came before."""

    async def scenario():
        receiver, _ = opened(0, 2)
        await received(receiver)
        began_s = asyncio.get_running_loop().time()
        events = await receiver.receive(events_max=10, wait_max=timedelta(seconds=wait_s))
        return list(events), asyncio.get_running_loop().time() - began_s

    assert run_virtual(scenario()) == ([], wait_s)


def test_a_message_or_the_end_of_the_link_wakes_a_waiting_receiver():
    """At once."""

    async def scenario():
        receiver, _ = opened(0, 0)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        loop.call_later(0.25, receiver.deliver, delivery(1))
        loop.call_later(0.75, receiver.end, SourceUnavailableError("ended"))
        numbers, got_s = await received(receiver), loop.time() - began_s
        with pytest.raises(SourceUnavailableError, match="ended"):
            await received(receiver)
        return numbers, got_s, loop.time() - began_s

    assert run_virtual(scenario()) == ([0], 0.25, 0.75)


def test_a_receiver_lets_other_tasks_run_while_messages_are_waiting():
    """A full queue would stop all other partitions otherwise."""

    async def scenario():
        receiver, _ = opened(0, 1)
        others: list[str] = []
        asyncio.get_running_loop().call_soon(others.append, "ran")
        await received(receiver)
        return others

    assert run_virtual(scenario()) == ["ran"]


def test_the_newest_message_is_the_last_delivered_one_until_the_broker_was_asked():
    """What waits there is added then."""

    async def scenario():
        receiver, _ = opened(10, 3)
        first = receiver.last_enqueued
        receiver.depth = 5
        return [one and one.sequence_number for one in (first, receiver.last_enqueued)]

    assert run_virtual(scenario()) == [12, 17]


def test_a_delivery_with_an_unexpected_tag_ends_the_link():
    """Its number would settle another message."""

    async def scenario():
        receiver, consumer = opened(0, 2)
        receiver.deliver(delivery(4))
        receiver.deliver(delivery(5))
        receiver.settle(1)
        with pytest.raises(SourceUnavailableError, match="delivery 4, expected was 3"):
            await received(receiver)
        return consumer.calls, receiver.is_over

    assert run_virtual(scenario()) == ([], True)


def test_no_more_is_settled_than_was_delivered():
    """A position of a former link may be further on."""

    async def scenario():
        receiver, consumer = opened(10, 3)
        receiver.settle(99)
        receiver.settle(99)
        receiver.settle(5, [SequenceRange(1, 4)])
        return consumer.calls

    assert run_virtual(scenario()) == [(3, [])]


def test_after_a_stop_messages_can_be_settled_and_after_a_close_not():
    """Closing ends the link, whose messages come again then."""

    async def scenario():
        receiver, consumer = opened(0, 3)
        await receiver.stop()
        receiver.settle(0)
        await receiver.until_settled()
        await receiver.close()
        await receiver.close()
        receiver.settle(2)
        for call in (received(receiver), receiver.until_settled()):
            with pytest.raises(SourceUnavailableError, match="closed"):
                await call
        return consumer.calls

    assert run_virtual(scenario()) == [
        ("stopped", 3.0),
        (1, []),
        ("asked", 3.0),
        ("stopped", 3.0),
        ("closed", 3.0),
    ]


def test_a_link_that_broke_delivers_nothing_more():
    """What waits in it comes again on the next one; the first error counts."""

    async def scenario():
        receiver, _ = opened(0, 3)
        receiver.end(SourceUnavailableError("first"))
        receiver.end(SourceUnavailableError("second"))
        with pytest.raises(SourceUnavailableError, match="first"):
            await received(receiver)

    run_virtual(scenario())


def test_the_newest_number_counts_what_waits_at_the_broker():
    """This is what the lag is computed from."""

    async def scenario():
        receiver, _ = opened(10, 3)
        receiver.depth = 7
        return receiver.last_enqueued

    newest = run_virtual(scenario())

    assert newest is not None
    assert (newest.sequence_number, newest.offset) == (19, "queue:19")


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
