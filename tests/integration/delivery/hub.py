"""The hub of a storm: Event Hubs in the emulator."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Final

from azure.eventhub import EventHubProducerClient

from eventproc.emulator import EventHubsEmulator
from tests.integration.delivery.fleet import send

PARTITIONS: Final = 8
NAME: Final = "hub"


class EmulatorHub:
    """A hub to which Azure's own client publishes.

    Its events have consecutive numbers as bodies, from 0 in each partition.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._parts = ExitStack()
        self.env: Mapping[str, str] = {}
        """How processes find it."""

    def open(self) -> None:
        """Start it, with empty partitions."""
        # Older than any checkpoint, also by a clock that is ten minutes behind: otherwise the hub
        # would count as created again.
        emulator = self._parts.enter_context(
            EventHubsEmulator({NAME: PARTITIONS}, hub_age=timedelta(hours=1))
        )
        address = emulator.connection_string_for(NAME)
        self.env = {"EVENTPROC_CONNECTION_STRING": address}
        self._producer = self._parts.enter_context(
            EventHubProducerClient.from_connection_string(address)
        )

    def close(self) -> None:
        """Stop it."""
        self._parts.close()

    def publish(self, numbers: Sequence[int]) -> None:
        """Publish these numbers to each partition, as one batch."""
        bodies = {number: str(number) for number in numbers}
        for partition in range(PARTITIONS):
            send(self._producer, numbers, str(partition), bodies)
