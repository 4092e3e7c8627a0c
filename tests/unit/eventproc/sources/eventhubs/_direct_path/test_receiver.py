"""Reading ahead with credit: in order, no more events than there is room for, never stuck."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventproc.emulator._amqp.values import Long, Symbol
from eventproc.errors import ReceiverDisplacedError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventBatch, LastEnqueued
from eventproc.sources.eventhubs._direct_path.frames import FrameParser
from eventproc.sources.eventhubs._direct_path.lazy_event import last_enqueued_in
from eventproc.sources.eventhubs._direct_path.receiver import (
    LISTEN_MAX_S,
    TOO_FULL,
    UNKNOWN_SIZE,
    Credit,
    EventHubReceiver,
)
from eventproc.testing._virtual_time import run_virtual
from tests.unit.eventproc.sources.eventhubs.messages import message, section

SOON = timedelta(seconds=5)
NOW = timedelta(0)


class FakeLink:
    """A link to a list of events, which delivers none without credit."""

    def __init__(self, sizes: list[int]) -> None:
        self.remaining = list(enumerate(sizes))
        self.credit = 0
        self.grants: list[int] = []
        self.error: Exception | None = None
        self.changed = asyncio.Event()
        self.is_closed = False
        self.parser = FrameParser(1, 0)
        self.is_reading: list[bool] = []
        self.is_attention_due = False

    async def grant(self, credit: int) -> None:
        self.credit = credit
        self.grants.append(credit)

    async def maintain(self, *, is_reading: bool = True) -> None:
        self.is_reading.append(is_reading)
        if self.error is not None:
            raise self.error

    async def listen(self) -> bytes:
        while self.error is None and not (self.remaining and self.credit):
            self.changed.clear()
            await self.changed.wait()
        if self.error is not None:
            raise self.error
        return b"something"

    def events_in(self, data: bytes) -> list[bytes]:
        assert data == b"something"
        arrived = self.remaining[: min(self.credit, 5)]
        del self.remaining[: len(arrived)]
        self.credit -= len(arrived)
        return [message(number, b"%d".ljust(size) % number) for number, size in arrived]

    async def attend(self) -> None:
        """Do nothing: there are no other frames."""

    def end(self, error: Exception) -> None:
        self.error = error
        self.changed.set()

    async def close(self) -> None:
        self.is_closed = True


def opened(
    count: int, room: int, *, size: int = 0, room_bytes: int = 10**6
) -> tuple[EventHubReceiver, FakeLink]:
    """A receiver, and the link that it reads."""
    link: Any = FakeLink([size] * count)
    return EventHubReceiver(link, room=room, room_bytes=room_bytes), link


async def turns(count: int = 20) -> None:
    """Let the reader run for some turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


@settings(max_examples=40)
@given(
    room=st.integers(1, 12),
    count=st.integers(0, 60),
    sizes=st.lists(st.integers(1, 15), min_size=1, max_size=10),
    columns_from=st.sampled_from([None, 0, 3]),
)
def test_all_events_arrive_in_order_and_the_buffer_is_bounded(room, count, sizes, columns_from):
    """For every size of buffer, number of events and batch size; as batches from any turn on."""

    async def run() -> None:
        receiver, link = opened(count, room)
        numbers: list[int] = []
        turn = 0
        while len(numbers) < count:
            await turns(3)
            if turn == columns_from:
                receiver.read_columns()
            held = len(receiver._buffer) + link.credit

            assert held <= room

            size = sizes[turn % len(sizes)]
            events = await receiver.receive(events_max=size, wait_max=SOON)

            assert 1 <= len(events) <= size
            assert isinstance(events, EventBatch) == (
                columns_from is not None and turn >= columns_from
            )

            numbers += [event.sequence_number for event in events]
            turn += 1

        assert numbers == list(range(count))

        await receiver.close()

        assert link.is_closed

    asyncio.run(run())


async def test_credit_is_renewed_before_it_is_used_up():
    """Otherwise the link would be idle for a round trip after each buffer."""
    receiver, link = opened(1000, 100)
    while link.remaining:
        await receiver.receive(events_max=10, wait_max=SOON)
    await receiver.close()

    assert len(link.grants) < 1000 / 100 * 3
    assert min(link.grants[1:]) >= 50


async def test_large_events_are_bounded_by_their_bytes():
    """No more are buffered than fit, and all arrive in the end."""
    receiver, link = opened(200, 100, size=10_000, room_bytes=100_000)
    await turns(100)
    held = len(receiver._buffer)
    numbers: list[int] = []
    while link.remaining or receiver._buffer:
        events = await receiver.receive(events_max=3, wait_max=SOON)
        numbers += [event.sequence_number for event in events]
        await turns(3)

        assert receiver._credit.held_bytes <= 100_000

    await receiver.close()

    assert held == 9
    assert numbers == list(range(200))


async def test_an_event_larger_than_the_buffer_is_received_alone():
    """Otherwise it would never arrive."""
    receiver, link = opened(5, 100, size=10_000, room_bytes=3000)
    for number in range(5):
        await turns()

        assert len(receiver._buffer) == 1

        (event,) = await receiver.receive(events_max=9, wait_max=SOON)

        assert event.sequence_number == number

    await receiver.close()

    assert link.grants == [1] * 5


async def test_events_beyond_the_room_are_not_read_from_the_link(monkeypatch):
    """A service may use credit that was granted while events were small."""
    receiver, link = opened(300, 100, size=10_000, room_bytes=20_000)
    link.credit = 100  # as granted while events were small
    monkeypatch.setattr(link, "grant", AsyncMock())  # it ignores new credit
    await turns(100)
    held = len(receiver._buffer)
    was_reading = link.is_reading[-1]
    numbers: list[int] = []
    while len(numbers) < 100:
        events = await receiver.receive(events_max=1, wait_max=SOON)
        numbers += [event.sequence_number for event in events]
        await turns(5)
    await receiver.close()

    assert 4 <= held <= 4 + 5
    assert was_reading is False
    assert numbers == list(range(100))


async def test_reading_resumes_as_soon_as_there_is_room(monkeypatch):
    """Not only when the idle link is checked, or when more credit is due."""
    receiver, link = opened(11, 100, size=10_000, room_bytes=40_000)
    link.credit = 11
    monkeypatch.setattr(link, "grant", AsyncMock())
    await turns()
    remaining_before = len(link.remaining)
    await receiver.receive(events_max=3, wait_max=SOON)
    await turns()
    remaining_after = len(link.remaining)
    await receiver.close()

    assert (remaining_before, remaining_after) == (1, 0)


def test_events_may_be_taken_in_the_moment_in_which_the_readers_wait_ends():
    """The wait is over then, though the reader has not run yet; it goes on by itself."""

    async def run() -> list[int]:
        loop = asyncio.get_running_loop()
        receiver, _ = opened(100, 10)
        await turns()
        taking = receiver.receive(events_max=10, wait_max=SOON)
        taking.send(None)  # It lets other tasks run.
        taken = loop.create_future()

        def take() -> None:
            try:
                taking.send(None)
            except StopIteration as end:
                taken.set_result(end.value)
            except Exception as error:  # noqa: BLE001 - the test fails with it
                taken.set_exception(error)

        loop.call_later(LISTEN_MAX_S, take)  # after the reader's own timer
        events = [*await taken, *await receiver.receive(events_max=10, wait_max=SOON)]
        await receiver.close()
        return [event.sequence_number for event in events]

    assert run_virtual(run())[:11] == list(range(11))


async def test_a_receiver_with_a_full_buffer_notices_its_displacement():
    """So a slow handler is stopped at once."""
    receiver, link = opened(1000, 10)
    await turns()
    full = len(receiver._buffer)
    link.end(ReceiverDisplacedError("another receiver"))
    await turns()

    assert full == 10
    with pytest.raises(ReceiverDisplacedError):
        await receiver.receive(events_max=5, wait_max=NOW)

    await receiver.close()


@pytest.mark.parametrize("error", [SourceUnavailableError("cut"), SourceRejectedError("gone")])
async def test_events_received_before_the_link_broke_are_delivered(error):
    """The next link begins after them."""
    receiver, link = opened(7, 10)
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


async def test_closing_before_the_reader_has_started_closes_the_link():
    """A task that never started runs no ``finally``."""
    receiver, link = opened(5, 10)
    await receiver.close()

    assert link.is_closed
    with pytest.raises(SourceUnavailableError):
        await receiver.receive(events_max=5, wait_max=SOON)


async def test_closing_ends_a_reader_whose_client_suppresses_the_cancellation(monkeypatch):
    """The reader does not read on after a call that returned instead of being cancelled."""
    receiver, link = opened(0, 4)
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


async def test_an_unexpected_error_of_the_reader_is_raised_by_receive():
    """Instead of returning no events for ever."""
    receiver, link = opened(0, 10)
    await turns()
    link.end(KeyError("a bug"))
    await turns()

    with pytest.raises(SourceUnavailableError, match="a bug") as raised:
        await receiver.receive(events_max=5, wait_max=SOON)

    await receiver.close()

    assert isinstance(raised.value.__cause__, KeyError)


async def test_an_event_received_while_a_thread_decodes_an_older_one_is_the_newest(monkeypatch):
    """For example when a handler's thread reads the lag."""
    first, second = (
        section(0x71, {Symbol("last_enqueued_sequence_number"): Long(number)}) + message(number)
        for number in (7, 8)
    )
    receiver, _ = opened(0, 10)

    def receive_meanwhile(payload: bytes) -> LastEnqueued | None:
        if payload is first:
            receiver._keep([second])
        return last_enqueued_in(payload)

    monkeypatch.setattr(
        "eventproc.sources.eventhubs._direct_path.receiver.last_enqueued_in", receive_meanwhile
    )
    receiver._keep([first])
    answers = [receiver.last_enqueued for _ in range(2)]

    assert [answer and answer.sequence_number for answer in answers] == [7, 8]

    await receiver.close()


MEGABYTE = 1024 * 1024


def test_the_first_grant_assumes_events_of_medium_size():
    """Their real size is not known yet."""
    assert Credit(1000, 8 * MEGABYTE).to_grant(0) == 8 * MEGABYTE // UNKNOWN_SIZE
    assert Credit(100, 8 * MEGABYTE).to_grant(0) == 100


def test_small_events_are_bounded_by_their_number():
    """As soon as the first ones have arrived."""
    account = Credit(1000, 8 * MEGABYTE)
    account.add(128, 128 * 100)

    assert account.to_grant(0) == 1000 - 128


def test_credit_is_reduced_when_events_become_larger():
    """What was granted for small events would fill the memory."""
    account = Credit(1000, 8 * MEGABYTE)
    account.add(1, 100)
    account.add(1, MEGABYTE)

    assert account.to_grant(998) == 6


def test_small_changes_of_size_do_not_change_the_credit():
    """So they cost no frames."""
    account = Credit(1000, MEGABYTE)
    account.add(1, 2000)
    granted = account.to_grant(0)
    account.add(1, 2600)

    assert granted is not None
    assert account.to_grant(granted - 1) is None


def test_credit_grows_again_when_events_become_smaller():
    """One large event among small ones slows the link down for a while only."""
    account = Credit(1000, MEGABYTE)
    account.add(1, MEGABYTE)
    account.remove(1, MEGABYTE)
    account.add(1, 100)
    account.remove(1, 100)

    assert account.capacity == 1

    for _ in range(40):
        account.add(10, 1000)
        account.remove(10, 1000)

    assert account.capacity == 1000


@given(
    events_max=st.integers(1, 1000),
    bytes_max=st.integers(1, 10_000),
    sizes=st.lists(st.integers(0, 20_000), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
)
def test_a_service_that_obeys_credit_never_fills_the_memory(
    events_max, bytes_max, sizes, batch_size
):
    """Whatever the sizes, in whatever order; and every event arrives in the end."""
    account, granted = Credit(events_max, bytes_max), 0
    held: list[int] = []
    left = list(sizes)
    most = max(sizes)
    while left or held:
        wanted = account.to_grant(granted)
        if wanted is not None:
            granted = wanted

        assert granted + len(held) <= events_max or granted <= 1

        if granted and left and not account.is_too_full:
            held.append(left.pop(0))
            account.add(1, held[-1])
            granted -= 1
        else:
            assert held, "no credit is granted although nothing is held"
            taken, held = held[:batch_size], held[batch_size:]
            account.remove(len(taken), sum(taken))

        assert account.held_bytes == sum(held)
        assert account.held_bytes < TOO_FULL * bytes_max + most + 1
