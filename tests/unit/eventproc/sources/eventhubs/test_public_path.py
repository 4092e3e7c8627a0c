"""Receiving by the client's public methods: errors of the client's own task are not lost."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from eventproc.errors import SourceError
from eventproc.models import EventPosition
from eventproc.sources.eventhubs._public_path import PublicReceiver


class FailingClient:
    """Replaces Azure's client where that raises instead of calling ``on_error``."""

    async def receive_batch(self, *_arguments: Any, **_settings: Any) -> None:
        """Raise at once."""
        raise RuntimeError("the client broke")

    async def close(self) -> None:
        """Nothing is open."""


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
