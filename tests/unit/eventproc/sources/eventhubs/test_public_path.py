"""Receiving by the client's public methods: errors of the client's own task are not lost."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventproc.errors import SourceError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.sources.eventhubs import EventHubOptions
from eventproc.sources.eventhubs._public_path import (
    EMPTY_BATCH_AFTER_S,
    SILENCE_MAX_S,
    PublicPath,
    PublicReceiver,
)
from eventproc.testing._virtual_time import run_virtual


class FailingClient:
    """Replaces Azure's client where that raises instead of calling ``on_error``."""

    async def receive_batch(self, *_arguments: Any, **_settings: Any) -> None:
        """Raise at once."""
        raise RuntimeError("the client broke")

    async def close(self) -> None:
        """Nothing is open."""


def batch_of(numbers: Iterable[int]) -> list[Any]:
    """Return events with these sequence numbers, as the client hands them over."""
    return [
        SimpleNamespace(
            raw_amqp_message=AmqpAnnotatedMessage(
                data_body=b"x",
                annotations={
                    b"x-opt-sequence-number": number,
                    b"x-opt-offset": b"%d" % number,
                    b"x-opt-enqueued-time": 1_795_205_646_471,
                },
            )
        )
        for number in numbers
    ]


class BatchClient:
    """Calls back with one batch of two events, and waits for ever afterwards."""

    async def receive_batch(self, on_batch: Any, **_settings: Any) -> None:
        await on_batch(None, batch_of([1, 2]))
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is open."""


def test_a_slow_handler_is_no_silence_of_the_client():
    """The client calls back only when its batch was taken."""

    async def scenario() -> tuple[list[int], bool]:
        client: Any = BatchClient()
        receiver = PublicReceiver(
            client, "receiving from partition '0'", buffer_size=2, on_open_failed=lambda: None
        )
        receiver.begin("0", EventPosition.earliest(), None, tracks_last_enqueued=False)
        found: list[ReceivedEvent] = []
        for _ in range(3):
            found += await receiver.receive(events_max=1, wait_max=timedelta(seconds=1))
            await asyncio.sleep(SILENCE_MAX_S + 1 if len(found) == 1 else 0)
        is_over = receiver.is_over
        await receiver.close()
        return [event.sequence_number for event in found], is_over

    assert run_virtual(scenario()) == ([1, 2], False)


class IdleClient:
    """Calls back with empty batches only; as Azure's, it takes some turns of the loop for it."""

    async def receive_batch(self, on_batch: Any, **_settings: Any) -> None:
        while True:
            await asyncio.sleep(EMPTY_BATCH_AFTER_S)
            for _ in range(10):
                await asyncio.sleep(0)
            await on_batch(None, [])

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("while_receiving", [False, True])
def test_a_blocked_loop_is_no_silence_of_the_client(while_receiving):
    """The client runs on the same loop, so it could not call back."""

    async def scenario() -> bool:
        client: Any = IdleClient()
        receiver = PublicReceiver(
            client, "receiving from partition '0'", buffer_size=2, on_open_failed=lambda: None
        )
        receiver.begin("0", EventPosition.earliest(), None, tracks_last_enqueued=False)
        await receiver.wait_until_open()
        loop: Any = asyncio.get_running_loop()

        def block() -> None:
            loop.now_s += SILENCE_MAX_S + 1

        if while_receiving:
            loop.call_later(1, block)
        else:
            block()
        await receiver.receive(events_max=1, wait_max=timedelta(seconds=5))
        await receiver.receive(events_max=1, wait_max=timedelta(seconds=5))
        is_over = receiver.is_over
        await receiver.close()
        return is_over

    assert not run_virtual(scenario())


async def test_receive_raises_when_the_client_fails():
    """At once, and not after ``silence_max``."""
    client: Any = FailingClient()
    receiver = PublicReceiver(
        client, "receiving from partition '0'", buffer_size=1, on_open_failed=lambda: None
    )
    receiver.begin("0", EventPosition.earliest(), None, tracks_last_enqueued=False)
    async with asyncio.timeout(5):
        with pytest.raises(SourceError, match="the client broke"):
            await receiver.receive(events_max=1, wait_max=timedelta(seconds=60))

    await receiver.close()

    assert receiver.is_over


class SlowlyOpeningClient:
    """Reads a partition of numbered events, by a link that is open after a second."""

    eventhub_name = "orders"

    def __init__(self, count: int) -> None:
        self.count = count

    async def get_partition_properties(self, partition_id: str) -> dict[str, Any]:
        """Return what the service would answer now."""
        return {
            "id": partition_id,
            "beginning_sequence_number": 0,
            "last_enqueued_sequence_number": self.count - 1,
            "last_enqueued_offset": str(self.count - 1),
            "last_enqueued_time_utc": datetime(2026, 1, 31, tzinfo=UTC),
            "is_empty": self.count == 0,
        }

    async def receive_batch(
        self, on_batch: Any, *, starting_position: str | int, **_settings: Any
    ) -> None:
        """Call back with what is after the position, and what comes later."""
        await asyncio.sleep(1)
        first = self.count if starting_position == "@latest" else int(starting_position) + 1
        while True:
            numbers = range(first, self.count)
            await on_batch(None, batch_of(numbers))
            first += len(numbers)
            await asyncio.sleep(EMPTY_BATCH_AFTER_S)

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("count", [0, 5])
def test_events_that_come_while_a_link_opens_at_the_latest_position_are_received(count):
    """Whoever has opened a receiver may publish, and wait for it."""

    async def scenario() -> list[int]:
        client: Any = SlowlyOpeningClient(count)
        latest = EventPosition.latest()
        path = PublicPath(EventHubOptions())
        receiver = await path.open_receiver(client, "$Default", "0", latest)
        client.count += 2
        events = await receiver.receive(events_max=9, wait_max=timedelta(seconds=10))
        await receiver.close()
        return [event.sequence_number for event in events]

    assert run_virtual(scenario()) == [count, count + 1]
