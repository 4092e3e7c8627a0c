"""An Event Hubs emulator in pure Python: AMQP 1.0 on the local machine, for tests."""

from eventproc._base import public_names as _public_names
from eventproc.emulator._amqp.message import StoredEvent
from eventproc.emulator._amqp.values import Described
from eventproc.emulator._hub.configuration import (
    CaptureConfiguration,
    EmulatorConfiguration,
    HubConfiguration,
    hubs_of,
    read_config_json,
)
from eventproc.emulator._hub.log import Retention
from eventproc.emulator._server import EmulatorServer, run, serve
from eventproc.emulator._threaded import EventHubsEmulator
from eventproc.emulator._tokens import Right, TokenRules

__all__ = [
    "CaptureConfiguration",
    "Described",
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

_public_names.set_module(__name__, globals())
