"""One emulator for the tests that do not stop it."""

from collections.abc import Iterator
from itertools import count

import pytest

from eventproc.emulator import EventHubsEmulator, HubConfiguration

_NUMBERS = count()


@pytest.fixture(scope="session")
def shared_emulator() -> Iterator[EventHubsEmulator]:
    """Yield an emulator with a hub for every test."""
    hubs = [HubConfiguration(f"hub-{index}", 4, ("other",)) for index in range(100)]
    with EventHubsEmulator(hubs) as emulator:
        yield emulator


@pytest.fixture
def hub(shared_emulator: EventHubsEmulator) -> str:
    """Return the name of a hub of four partitions that no test has used."""
    return f"hub-{next(_NUMBERS)}"
