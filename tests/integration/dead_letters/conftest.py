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
        queue_type = kind.removeprefix("rabbitmq-")
        place = QueuePlace(request.getfixturevalue("rabbitmq"), **{"x-queue-type": queue_type})
        asyncio.run(place.declare())
        yield place


@pytest.fixture(
    name="place",
    params=[
        *("memory", "blob", "hub", "rabbitmq-classic"),
        pytest.param("rabbitmq-quorum", marks=pytest.mark.long),
    ],
)
def _place(request: pytest.FixtureRequest) -> Iterator[LetterPlace]:
    yield from made(request.param, request)


@pytest.fixture(
    name="fragile",
    params=[
        "blob",
        "hub",
        pytest.param("rabbitmq-classic", marks=pytest.mark.long),
    ],
)
def _fragile(request: pytest.FixtureRequest) -> Iterator[LetterPlace]:
    """Yield a place in which something can be damaged."""
    yield from made(request.param, request)


@pytest.fixture(name="hubs")
def _hubs() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"orders": 4, "dead": 3}) as emulator:
        yield emulator
