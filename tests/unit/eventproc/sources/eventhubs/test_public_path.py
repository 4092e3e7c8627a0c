"""Receiving by the client's public methods: errors of the client's own task are not lost."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub.amqp import AmqpAnnotatedMessage

from eventproc.errors import SourceError
from eventproc.models import EventPosition, ReceivedEvent
from eventproc.sources.eventhubs._public_path import SILENCE_MAX_S, PublicReceiver
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
