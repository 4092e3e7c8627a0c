"""Reading ahead by credit: in order, never more than there is room for, never stuck."""

import asyncio
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventproc.errors import (
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.sources.eventhubs.receiver import EventHubReceiver

SOON = timedelta(seconds=5)
NOW = timedelta(0)


class Message(NamedTuple):
    """As much of a message as an event needs."""

    message_annotations: dict[bytes, Any]
    data: list[bytes]
    delivery_annotations: Any = None
    properties: Any = None
    application_properties: Any = None
    sequence: Any = None
    value: Any = None


class LogLink:
    """A link to a list of events that keeps AMQP's rule: no event without credit."""

    def __init__(self, count: int, deliver: Any) -> None:
        self.left = list(range(count))
        self.deliver = deliver
        self.credit = 0
        self.grants: list[int] = []
        self.error: Exception | None = None
        self.changed = asyncio.Event()
        self.is_closed = False

    async def grant(self, credit: int) -> None:
        self.credit = credit
        self.grants.append(credit)

    async def listen(self, frames_max: int) -> None:
        for _ in range(frames_max):
            while self.error is None and not (self.left and self.credit):
                self.changed.clear()
                await self.changed.wait()
            if self.error is not None:
                raise self.error
            number = self.left.pop(0)
            self.credit -= 1
            annotations = {
                b"x-opt-sequence-number": number,
                b"x-opt-offset": str(number),
                b"x-opt-enqueued-time": number,
            }
            self.deliver(Message(annotations, [b"%d" % number]))

    def end(self, error: Exception) -> None:
        self.error = error
        self.changed.set()

    async def close(self) -> None:
        self.is_closed = True


async def opened(count: int, room: int) -> tuple[EventHubReceiver, LogLink]:
    """A receiver and the link it reads."""
    links = []

    async def open_link(deliver: Any) -> LogLink:
        links.append(LogLink(count, deliver))
        return links[0]

    return await EventHubReceiver.open(open_link, room=room), links[0]


async def turns(count: int = 20) -> None:
    """Let the reader do what it can."""
    for _ in range(count):
        await asyncio.sleep(0)


@settings(max_examples=40)
@given(
    room=st.integers(1, 12),
    count=st.integers(0, 60),
    sizes=st.lists(st.integers(1, 15), min_size=1, max_size=10),
)
def test_all_events_come_in_order_and_never_more_are_held_than_there_is_room_for(
    room, count, sizes
):
    """For every room, every number of events and every appetite."""

    async def run() -> None:
        receiver, link = await opened(count, room)
        numbers: list[int] = []
        turn = 0
        while len(numbers) < count:
            await turns(3)
            held = len(receiver._buffer) + link.credit

            assert held <= room

            size = sizes[turn % len(sizes)]
            events = await receiver.receive(events_max=size, wait_max=SOON)

            assert 1 <= len(events) <= size

            numbers += [event.sequence_number for event in events]
            turn += 1

        assert numbers == list(range(count))

        await receiver.close()

        assert link.is_closed

    asyncio.run(run())


async def test_credit_is_renewed_before_it_is_used_up():
    """Else there would be silence for a round trip after each buffer."""
    receiver, link = await opened(1000, 100)
    while link.left:
        await receiver.receive(events_max=10, wait_max=SOON)
    await receiver.close()

    assert len(link.grants) < 1000 / 100 * 3
    assert min(link.grants[1:]) >= 50


async def test_a_full_buffer_still_hears_that_it_is_displaced():
    """A slow handler must learn at once that the partition is another's."""
    receiver, link = await opened(1000, 10)
    await turns()
    full = len(receiver._buffer)
    link.end(ReceiverDisplacedError("another came"))
    await turns()

    assert full == 10
    with pytest.raises(ReceiverDisplacedError):
        await receiver.receive(events_max=5, wait_max=NOW)

    await receiver.close()


@pytest.mark.parametrize("error", [SourceUnavailableError("cut"), SourceRejectedError("gone")])
async def test_what_had_come_before_the_link_broke_is_still_delivered(error):
    """Those events are in order and will not be sent twice: the next link begins behind them."""
    receiver, link = await opened(7, 10)
    await turns()
    link.end(error)
    await turns()
    first = await receiver.receive(events_max=5, wait_max=NOW)
    second = await receiver.receive(events_max=5, wait_max=NOW)

    assert [event.sequence_number for event in (*first, *second)] == list(range(7))
    for _ in range(2):
        with pytest.raises(type(error)):
            await receiver.receive(events_max=5, wait_max=SOON)
    assert link.is_closed
    assert receiver.is_over

    await receiver.close()


async def test_closing_before_the_reader_had_its_turn_closes_the_link():
    """A task that never began runs no ``finally``."""
    receiver, link = await opened(5, 10)
    await receiver.close()

    assert link.is_closed
    with pytest.raises(SourceUnavailableError):
        await receiver.receive(events_max=5, wait_max=SOON)


async def test_a_reader_that_fails_in_an_unforeseen_way_is_no_silence():
    """The receiver says that it is over instead of returning nothing for ever."""
    receiver, link = await opened(0, 10)
    await turns()
    link.end(KeyError("a bug"))
    await turns()

    with pytest.raises(SourceUnavailableError, match="stopped"):
        await receiver.receive(events_max=5, wait_max=SOON)

    await receiver.close()

    assert receiver._reader is not None
    assert isinstance(receiver._reader.exception(), KeyError)
