"""An Event Hubs endpoint for one's own machine: AMQP 1.0 on loopback, nothing but Python."""

from eventproc.emulator.configuration import (
    EmulatorConfiguration,
    HubConfiguration,
    hubs_of,
    read_config_json,
)
from eventproc.emulator.log import Retention
from eventproc.emulator.message import StoredEvent
from eventproc.emulator.running import run, serve
from eventproc.emulator.server import EmulatorServer
from eventproc.emulator.threaded import EventHubsEmulator

__all__ = [
    "EmulatorConfiguration",
    "EmulatorServer",
    "EventHubsEmulator",
    "HubConfiguration",
    "Retention",
    "StoredEvent",
    "hubs_of",
    "read_config_json",
    "run",
    "serve",
]
