"""Hubs for the tests of positions."""

from collections.abc import Iterator

import pytest

from eventproc.emulator import EventHubsEmulator


@pytest.fixture
def new_hub() -> Iterator[str]:
    """Yield the connection string of a hub with two partitions."""
    with EventHubsEmulator({"Orders": 2}) as emulator:
        yield emulator.connection_string_for("Orders")
