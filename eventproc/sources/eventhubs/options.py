"""How an ``EventHubSource`` connects and reads: one frozen value, checked when it is built."""

import os
import ssl
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Final

from eventproc.errors import ConfigurationError

PREFETCH_MAX: Final = 10_000
"""Above this, memory is at stake and nothing is gained: an event may have 1 MB."""


class Transport(Enum):
    """What carries AMQP to the service."""

    AMQP = "amqp"
    """TCP on port 5671, with TLS."""

    WEBSOCKET = "websocket"
    """Port 443, where 5671 is closed."""


class ReceivePath(Enum):
    """How events come out of Azure's client."""

    DIRECT = "direct"
    """Off its connection, undecoded: fast, and by names that the package does not promise. Where
    the installed release lacks one of them, it is as ``PROMISED``, with a warning."""

    PROMISED = "promised"
    """By its public methods alone: many times slower, some 30 ms later, and bounded in number
    only."""


RECEIVE_PATH_VARIABLE: Final = "EVENTPROC_RECEIVE_PATH"
"""For whoever cannot change the program that builds the options: a way out where a new release of
``azure-eventhub`` has the names that are looked for, and means something else by them."""


def receive_path_by_default() -> ReceivePath:
    """Return what the environment asks for: ``direct`` unless it says otherwise.

    Raises:
        ConfigurationError: it asks for what there is not.
    """
    given = os.environ.get(RECEIVE_PATH_VARIABLE) or ReceivePath.DIRECT.value
    try:
        return ReceivePath(given.strip().lower())
    except ValueError:
        known = " or ".join(path.value for path in ReceivePath)
        raise ConfigurationError(
            f"the environment variable {RECEIVE_PATH_VARIABLE} is {given!r}: set it to {known}, or "
            "leave it out"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProxy:
    """A proxy on the way to the service; with it the transport is always a websocket."""

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHubOptions:
    """Every setting of an ``EventHubSource``. The defaults suit most hubs."""

    prefetch: int = 1000
    """Most events that wait in memory for each partition; never more are asked of the service
    than there is room for. Measured against 300, the default of Azure's clients: see
    ``docs/decisions/0021-how-events-are-read.md``."""

    prefetch_bytes: int = 8 * 1024 * 1024
    """The same in bytes. The service counts events only, so this is kept by asking for as many as
    fit of the size that events lately had; where they grow all at once, it may be up to twice as
    much for a while. One event is always asked for, whatever its size."""

    is_exclusive: bool = True
    """Whether a receiver displaces every other one of its partition and consumer group, as the
    processors of all SDKs do. Without it up to five may read a partition side by side, but none
    while an exclusive one is there."""

    transport: Transport = Transport.AMQP

    connect_timeout: timedelta = timedelta(seconds=15)
    """The budget of one question to the service, connecting included."""

    silence_max: timedelta = timedelta(minutes=1)
    """A connection on which nothing at all came for so long is broken, though nobody said so; the
    service sends signs of life more often than that. A minute, as in Azure's .NET client; its
    Python client waits until the operating system gives up."""

    custom_endpoint: str | None = None
    """Connect here instead of to the namespace: ``sb://<host>[:<port>]`` of a gateway."""

    http_proxy: HttpProxy | None = None

    ca_bundle: str | None = None
    """A file with the certificates to trust; by default those of ``certifi``."""

    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    """Instead of ``ca_bundle``."""

    is_tls_on: bool = True
    """False only for an emulator; a connection string that says ``UseDevelopmentEmulator=true``
    switches it off by itself."""

    user_agent: str | None = None
    """Put before the client's own name in what the service logs."""

    is_wire_logged: bool = False
    """Whether Azure's client logs each frame, at DEBUG, below ``azure.eventhub``: all but those
    that carry events, where these are read directly."""

    receive_path: ReceivePath = field(default_factory=receive_path_by_default)
    """By default what the environment variable ``EVENTPROC_RECEIVE_PATH`` says where the options
    are built, and without it ``DIRECT``."""

    def __post_init__(self) -> None:
        """Refuse, with the remedy, what cannot work."""
        if not 1 <= self.prefetch <= PREFETCH_MAX:
            raise ConfigurationError(f"prefetch is {self.prefetch}: give 1 to {PREFETCH_MAX}")
        if self.prefetch_bytes < 1:
            raise ConfigurationError(f"prefetch_bytes is {self.prefetch_bytes}: give 1 or more")
        if self.connect_timeout <= timedelta(0):
            raise ConfigurationError(
                f"connect_timeout is {self.connect_timeout}: give a positive time"
            )
        if self.silence_max < timedelta(seconds=1):
            raise ConfigurationError(f"silence_max is {self.silence_max}: give a second or more")
        if self.ca_bundle is not None and self.ssl_context is not None:
            raise ConfigurationError("give ca_bundle or ssl_context, not both")
