"""Receiving by the client's public methods: errors of the client's own task are not lost."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventproc.errors import SourceError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.sources.eventhubs._public_path import (
    EMPTY_BATCH_AFTER_S,
    SILENCE_MAX_S,
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


class BatchClient:
    """Calls back with one batch of two events, and waits for ever afterwards."""

    async def receive_batch(self, on_batch: Any, **_settings: Any) -> None:
        annotations = {
            number: {
                b"x-opt-sequence-number": number,
                b"x-opt-offset": b"%d" % number,
                b"x-opt-enqueued-time": 1_795_205_646_471,
            }
            for number in (1, 2)
        }
        messages = [
            AmqpAnnotatedMessage(data_body=b"x", annotations=found)
            for found in annotations.values()
        ]
        await on_batch(None, [SimpleNamespace(raw_amqp_message=message) for message in messages])
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
