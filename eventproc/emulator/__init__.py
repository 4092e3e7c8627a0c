"""An Event Hubs emulator in pure Python: AMQP 1.0 on the local machine, for tests."""

from eventproc.emulator.amqp.message import StoredEvent
from eventproc.emulator.hub.configuration import (
    EmulatorConfiguration,
    HubConfiguration,
    hubs_of,
    read_config_json,
)
from eventproc.emulator.hub.log import Retention
from eventproc.emulator.running import run, serve
from eventproc.emulator.server import EmulatorServer
from eventproc.emulator.threaded import EventHubsEmulator
from eventproc.emulator.tokens import Right, TokenRules

__all__ = [
    "EmulatorConfiguration",
    "EmulatorServer",
    "EventHubsEmulator",
    "HubConfiguration",
    "Retention",
    "Right",
    "StoredEvent",
    "TokenRules",
    "hubs_of",
    "read_config_json",
    "run",
    "serve",
]
