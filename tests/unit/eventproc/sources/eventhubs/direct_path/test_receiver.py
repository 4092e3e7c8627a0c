"""Reading ahead by credit: in order, never more than there is room for, never stuck."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventproc.emulator.amqp.values import Long, Symbol
from eventproc.errors import (
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.models import LastEnqueued
from eventproc.sources.eventhubs.direct_path.credit import Credit
from eventproc.sources.eventhubs.direct_path.lazy_event import last_enqueued_in
from eventproc.sources.eventhubs.direct_path.receiver import EventHubReceiver
from tests.unit.eventproc.sources.eventhubs.messages import message, section

SOON = timedelta(seconds=5)
NOW = timedelta(0)


class LogLink:
    """A link to a list of events that keeps AMQP's rule: no event without credit."""

    def __init__(self, sizes: list[int], deliver: Any) -> None:
        self.left = list(enumerate(sizes))
        self.deliver = deliver
        self.credit = 0
        self.grants: list[int] = []
        self.error: Exception | None = None
        self.changed = asyncio.Event()
        self.is_closed = False
        self.is_reading: list[bool] = []

    async def grant(self, credit: int) -> None:
        self.credit = credit
        self.grants.append(credit)

    async def look_after(self, *, is_reading: bool = True) -> None:
        self.is_reading.append(is_reading)
        if self.error is not None:
            raise self.error

    async def listen(self) -> bytes:
        while self.error is None and not (self.left and self.credit):
            self.changed.clear()
            await self.changed.wait()
        if self.error is not None:
            raise self.error
        return b"something"

    async def take(self, data: bytes) -> None:
        assert data == b"something"
        came = self.left[: min(self.credit, 5)]
        del self.left[: len(came)]
        self.credit -= len(came)
        self.deliver([message(number, b"%d".ljust(size) % number) for number, size in came])

    def end(self, error: Exception) -> None:
        self.error = error
        self.changed.set()

    async def close(self) -> None:
        self.is_closed = True


async def opened(
    count: int, room: int, *, size: int = 0, room_bytes: int = 10**6
) -> tuple[EventHubReceiver, LogLink]:
    """A receiver and the link it reads."""
    links = []

    async def open_link(deliver: Any) -> LogLink:
        links.append(LogLink([size] * count, deliver))
        return links[0]

    receiver = await EventHubReceiver.open(open_link, room=room, room_bytes=room_bytes)
    return receiver, links[0]


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


async def test_large_events_are_bounded_by_their_bytes():
    """Whoever does not take them gets no more than fit, and everything in the end."""
    receiver, link = await opened(200, 100, size=10_000, room_bytes=100_000)
    await turns(100)
    held = len(receiver._buffer)
    numbers: list[int] = []
    while link.left or receiver._buffer:
        events = await receiver.receive(events_max=3, wait_max=SOON)
        numbers += [event.sequence_number for event in events]
        await turns(3)

        assert sum(map(len, receiver._buffer)) <= 100_000

    await receiver.close()

    assert held == 9
    assert numbers == list(range(200))


async def test_an_event_larger_than_the_room_comes_alone():
    """Else it would never come."""
    receiver, link = await opened(5, 100, size=10_000, room_bytes=3000)
    for number in range(5):
        await turns()

        assert len(receiver._buffer) == 1

        (event,) = await receiver.receive(events_max=9, wait_max=SOON)

        assert event.sequence_number == number

    await receiver.close()

    assert link.grants == [1] * 5


async def test_a_flood_that_credit_does_not_stop_is_not_read(monkeypatch):
    """A service may send what it was granted before, however large the events have become."""
    receiver, link = await opened(300, 100, size=10_000, room_bytes=20_000)
    link.credit = 100  # as granted when events were small
    monkeypatch.setattr(link, "grant", AsyncMock())  # it does not listen
    await turns(100)
    held = len(receiver._buffer)
    resting = link.is_reading[-1]
    numbers: list[int] = []
    while len(numbers) < 100:
        events = await receiver.receive(events_max=1, wait_max=SOON)
        numbers += [event.sequence_number for event in events]
        await turns(5)
    await receiver.close()

    assert 4 <= held <= 4 + 5
    assert resting is False
    assert numbers == list(range(100))


async def test_reading_goes_on_as_soon_as_there_is_room_again(monkeypatch):
    """Not only when the idle link is looked after, nor only when more credit is due."""
    receiver, link = await opened(11, 100, size=10_000, room_bytes=40_000)
    link.credit = 11
    monkeypatch.setattr(link, "grant", AsyncMock())
    await turns()
    left_before = len(link.left)
    await receiver.receive(events_max=3, wait_max=SOON)
    await turns()
    left_after = len(link.left)
    await receiver.close()

    assert (left_before, left_after) == (1, 0)


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


async def test_closing_ends_a_reader_whose_client_suppresses_the_cancellation(monkeypatch):
    """The reader does not read on after a call that returned instead of being cancelled."""
    receiver, link = await opened(0, 4)
    waits = [asyncio.Event(), asyncio.Event()]

    async def listen() -> bytes:
        wait = waits.pop(0)
        with suppress(asyncio.CancelledError if waits else KeyError):
            await wait.wait()
        return b"something"

    monkeypatch.setattr(link, "listen", listen)
    await turns()
    async with asyncio.timeout(5):
        await receiver.close()

    assert link.is_closed
    assert len(waits) == 1, "it listened once"


async def test_a_reader_that_fails_in_an_unforeseen_way_is_no_silence():
    """The receiver says that it is over and why, instead of returning nothing for ever."""
    receiver, link = await opened(0, 10)
    await turns()
    link.end(KeyError("a bug"))
    await turns()

    with pytest.raises(SourceUnavailableError, match="a bug") as raised:
        await receiver.receive(events_max=5, wait_max=SOON)

    await receiver.close()

    assert isinstance(raised.value.__cause__, KeyError)


async def test_an_event_that_comes_while_a_thread_looks_into_an_older_one_counts(monkeypatch):
    """A handler's thread asks for its lag, say; the end of the partition is told by the newest."""
    first, second = (
        section(0x71, {Symbol("last_enqueued_sequence_number"): Long(number)}) + message(number)
        for number in (7, 8)
    )
    receiver = EventHubReceiver(Credit(10, 10**9))

    def slow_look(payload: bytes) -> LastEnqueued | None:
        if payload is first:
            receiver._keep([second])
        return last_enqueued_in(payload)

    monkeypatch.setattr(
        "eventproc.sources.eventhubs.direct_path.receiver.last_enqueued_in", slow_look
    )
    receiver._keep([first])
    answers = [receiver.last_enqueued for _ in range(2)]

    assert [answer and answer.sequence_number for answer in answers] == [7, 8]
