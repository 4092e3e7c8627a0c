"""Outages of hub and store, and another client that takes the link: ``on_error`` is told."""

import asyncio
from collections.abc import Iterator

import pytest

from eventproc.emulator import EventHubsEmulator
from eventproc.testing._azurite import Azurite
from tests.integration.compat.aio_programs import CheckpointingReceiving, Receiving
from tests.integration.compat.sides import Place

pytestmark = [pytest.mark.integration, pytest.mark.long]


@pytest.fixture(name="emulator")
def _emulator() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"hub": 2}) as emulator:
        yield emulator


def test_a_link_continues_after_the_last_event(emulator):
    """The hub was away, or another client with a higher level had the partition."""

    async def run() -> None:
        place = Place("eventproc", emulator, "hub", "")
        place.publish(["a", "b"])
        receiving = Receiving(place.aio_client()).begin(owner_level=0)
        seen = receiving.by_partition["0"]
        await receiving.until(lambda: 1 in seen)
        emulator.stop()
        await receiving.until(lambda: "error ConnectionLostError" in seen)
        emulator.start()
        await asyncio.to_thread(place.publish, ["c"])
        await receiving.until(lambda: 2 in seen)
        other = Receiving(place.aio_client())
        other.begin(owner_level=1, partition_id="0", starting_position="@latest")
        await receiving.until(lambda: seen.count("error ConnectionLostError") == 2)
        await other.end()
        await asyncio.to_thread(place.publish, ["d"])
        await receiving.until(lambda: 3 in seen)
        await receiving.end()
        lost = "error ConnectionLostError"
        assert seen == ["initialize", 0, 1, lost, 2, lost, 3, "close SHUTDOWN"]

    asyncio.run(run())


def test_a_store_that_does_not_answer_fails_the_callback(emulator, azurite: Azurite):
    """Its error reaches the program; the partition begins again after its checkpoint."""

    async def run() -> None:
        place = Place("eventproc", emulator, "hub", azurite.connection_string)
        place.publish(["a", "b"])
        store = place.blob_store()
        receiving = CheckpointingReceiving(place.aio_client(checkpoint_store=store)).begin()
        await receiving.until(lambda: 1 in receiving.stored)
        azurite.stop()
        await receiving.until(lambda: receiving.errors)
        await asyncio.to_thread(place.publish, ["c"])
        seen = receiving.by_partition["0"]
        await receiving.until(lambda: "close OWNERSHIP_LOST" in seen)
        azurite.start()
        await receiving.until(lambda: 2 in receiving.stored)
        await receiving.end()
        assert seen[:5] == ["initialize", 0, 1, 2, "error ServiceRequestError"]
        assert seen[-4:] == ["close OWNERSHIP_LOST", "initialize", 2, "close SHUTDOWN"]
        assert receiving.errors[0].startswith("StoreUnavailableError")

    asyncio.run(run())
