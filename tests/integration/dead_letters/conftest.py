"""The places of dead letters on which the contract of readers is checked."""

import asyncio
from collections.abc import Iterator

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.integration.dead_letters.places import (
    BlobPlace,
    HubPlace,
    LetterPlace,
    MemoryPlace,
    QueuePlace,
    StreamPlace,
)


def made(kind: str, request: pytest.FixtureRequest) -> Iterator[LetterPlace]:
    """Yield an empty place of a kind."""
    if kind == "memory":
        yield MemoryPlace()
    elif kind == "blob":
        yield BlobPlace(request.getfixturevalue("storage"), request.getfixturevalue("container"))
    elif kind == "hub":
        with EventHubsEmulator({"dead": 3}) as emulator:
            yield HubPlace(emulator)
    else:
        broker = request.getfixturevalue("rabbitmq")
        place = (
            StreamPlace(broker)
            if kind == "rabbitmq-stream"
            else QueuePlace(broker, **{"x-queue-type": kind.removeprefix("rabbitmq-")})
        )
        asyncio.run(place.declare())
        yield place


@pytest.fixture(
    name="place",
    params=[
        *("memory", "blob", "hub", "rabbitmq-classic"),
        *(
            pytest.param(kind, marks=pytest.mark.long)
            for kind in ("rabbitmq-quorum", "rabbitmq-stream")
        ),
    ],
)
def _place(request: pytest.FixtureRequest) -> Iterator[LetterPlace]:
    yield from made(request.param, request)


@pytest.fixture(
    name="fragile",
    params=[
        "blob",
        "hub",
        *(
            pytest.param(kind, marks=pytest.mark.long)
            for kind in ("rabbitmq-classic", "rabbitmq-stream")
        ),
    ],
)
def _fragile(request: pytest.FixtureRequest) -> Iterator[LetterPlace]:
    """Yield a place in which something can be damaged."""
    yield from made(request.param, request)


@pytest.fixture(name="hubs")
def _hubs() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"orders": 4, "dead": 3}) as emulator:
        yield emulator
