"""The plugin that pytest finds in every environment with eventproc: an event hub for a test.

It imports the emulator only in tests that ask for it: pytest loads this module at each start.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from eventproc.emulator import EventHubsEmulator

NAME = "event-hub"
"""The name of the hub that a test gets unless its marker names others."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "eventhubs(hubs={'event-hub': 4}, **settings): what `eventhubs_emulator` serves: hubs with "
        "their numbers of partitions, and further arguments of `EventHubsEmulator`",
    )


@pytest.fixture
def eventhubs_emulator(request: pytest.FixtureRequest) -> Iterator["EventHubsEmulator"]:
    """Serve event hubs on this machine while a test runs: empty ones, for this test alone."""
    from eventproc.emulator import EventHubsEmulator  # noqa: PLC0415 - see above

    marker = request.node.get_closest_marker("eventhubs")
    arguments = marker.args if marker is not None else ()
    settings = marker.kwargs if marker is not None else {}
    if not arguments:
        settings = {"hubs": {NAME: 4}, **settings}
    with EventHubsEmulator(*arguments, **settings) as emulator:
        yield emulator


@pytest.fixture
def eventhubs_connection_string(eventhubs_emulator: "EventHubsEmulator") -> str:
    """Return the connection string of the emulator's first hub."""
    first = eventhubs_emulator.configuration.hubs[0].name
    return eventhubs_emulator.connection_string_for(first)
