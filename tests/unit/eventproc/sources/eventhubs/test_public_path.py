"""Receiving by the client's public methods: what ends the client's own task is not left to it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from eventproc.errors import SourceError
from eventproc.models import EventPosition
from eventproc.sources.eventhubs.public_path import PublicReceiver


class Broken:
    """Stands in for Azure's client where that raises in place of telling ``on_error``."""

    async def receive_batch(self, *_arguments: Any, **_settings: Any) -> None:
        """Break at once."""
        raise RuntimeError("the client broke")

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_client_that_breaks_is_told_to_who_receives():
    """At once, and not when the silence has lasted for so long that a setting is suspected."""
    client: Any = Broken()
    receiver = PublicReceiver(
        client, "receiving from partition '0'", buffer_size=1, on_open_failed=lambda: None
    )
    receiver.begin("0", EventPosition.earliest(), None, tracks_last_enqueued=False)
    async with asyncio.timeout(5):
        with pytest.raises(SourceError, match="the client broke"):
            await receiver.receive(events_max=1, wait_max=timedelta(seconds=60))

    await receiver.close()

    assert receiver.is_over
