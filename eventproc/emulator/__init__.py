"""An Event Hubs endpoint for one's own machine: AMQP 1.0 on loopback, nothing but Python."""

from eventproc.emulator.configuration import EmulatorConfiguration, HubConfiguration
from eventproc.emulator.log import Retention
from eventproc.emulator.message import StoredEvent
from eventproc.emulator.server import EmulatorServer
from eventproc.emulator.threaded import EventHubsEmulator

__all__ = [
    "EmulatorConfiguration",
    "EmulatorServer",
    "EventHubsEmulator",
    "HubConfiguration",
    "Retention",
    "StoredEvent",
]
