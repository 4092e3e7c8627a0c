"""The settings of an ``EventHubSource``, checked when they are built."""

import os
import ssl
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Annotated, Final

from eventproc._base.network import HttpProxy
from eventproc._base.settings import Count, PositiveSpan, Within, check_settings
from eventproc.errors import ConfigurationError

PREFETCH: Final = 1000
"""The default of ``prefetch``, where events are not read as columns."""

PREFETCH_MAX: Final = 10_000
"""Upper limit of ``prefetch``. More costs memory (an event may have 1 MB) and gains nothing."""


class Transport(Enum):
    """The transport below AMQP."""

    AMQP = "amqp"
    """TCP on port 5671, with TLS."""

    WEBSOCKET = "websocket"
    """AMQP over WebSockets, on port 443, for networks that block port 5671."""


class ReceivePath(Enum):
    """How events are read from Azure's client."""

    DIRECT = "direct"
    """Read encoded events from the client's connection. Fast, but it uses private names of
    ``azure-eventhub``. If the installed release lacks one of them, the source logs a warning and
    uses ``PUBLIC``."""

    PUBLIC = "public"
    """Use the client's public methods only: many times slower, about 30 ms more latency, and the
    buffer is bounded in events but not in bytes."""


RECEIVE_PATH_VARIABLE: Final = "EVENTPROC_RECEIVE_PATH"
"""The environment variable for the default of ``EventHubOptions.receive_path``. It allows operators
to switch to the public path without a change of the program, if a new release of ``azure-eventhub``
keeps the private names but changes their meaning."""


def receive_path_by_default() -> ReceivePath:
    """Return the path that ``EVENTPROC_RECEIVE_PATH`` names, or ``DIRECT`` if it is not set.

    Raises:
        ConfigurationError: the variable has another value.
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
class EventHubOptions:
    """Every setting of an ``EventHubSource``. The defaults suit most hubs."""

    prefetch: Annotated[int, Within(least=1, most=PREFETCH_MAX)] | None = None
    """Most events that wait in memory for each partition. The service is never asked for more
    events than there is room for. By default 1,000 (Azure's clients: 300, at most 15,000 events a
    second with a round trip of 20 ms), and 10,000 for handlers of columns, because a large batch of
    columns costs less for each event."""

    prefetch_bytes: Count = 8 * 1024 * 1024
    """Most bytes of events that wait in memory for each partition. AMQP credit counts events only,
    so the number of events to request is computed from the size of recent events. If events
    suddenly become larger, the buffer may exceed this limit up to twofold for a while. At least
    one event is always requested, whatever its size."""

    is_exclusive: bool = True
    """Whether a receiver displaces every other receiver of its partition and consumer group, as
    the processors of all Azure SDKs do. If false, up to five receivers may read a partition at
    once, unless an exclusive receiver reads it."""

    owner_level: Annotated[int, Within(least=0)] = 0
    """The level of an exclusive receiver. Of two receivers with equal levels the newer one wins,
    otherwise the one with the higher level. 0 is that of Azure's own processors: a higher level
    locks them out of a shared group."""

    tracks_last_enqueued: bool = True
    """Whether the service adds to each event the position of the newest event of its partition,
    about 150 bytes. A processor's lag is computed from it. If false, ``last_enqueued`` of a
    receiver is always ``None``."""

    transport: Transport = Transport.AMQP
    """The transport below AMQP: TCP on port 5671, or WebSockets on port 443."""

    connect_timeout: PositiveSpan = timedelta(seconds=15)
    """Longest time for one request to the service, connecting included."""

    silence_max: Annotated[timedelta, Within(least=timedelta(seconds=1))] = timedelta(minutes=1)
    """A connection that received nothing for this long counts as broken; the service sends
    heartbeats more often than that. One minute is the value of Azure's .NET client; Azure's Python
    client waits until the operating system closes the connection."""

    custom_endpoint: str | None = None
    """The address of a gateway to connect to instead of the namespace: ``sb://<host>[:<port>]``."""

    http_proxy: HttpProxy | None = None
    """The HTTP proxy to connect through; ``None`` connects without one. With a proxy the transport
    is AMQP over WebSockets, whatever ``transport`` is."""

    ca_bundle: str | None = None
    """A file with the certificates to trust; by default those of ``certifi``."""

    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    """The SSL context to use instead of ``ca_bundle``."""

    is_tls_on: bool = True
    """False only for an emulator. A connection string with ``UseDevelopmentEmulator=true`` sets it
    to false."""

    user_agent: str | None = None
    """Text that is put before the client's own name in the service's logs."""

    is_wire_logged: bool = False
    """Whether Azure's client logs each AMQP frame, at DEBUG, to loggers below ``azure.eventhub``.
    With ``ReceivePath.DIRECT`` the frames that carry events are not logged."""

    receive_path: ReceivePath = field(default_factory=receive_path_by_default)
    """How events are read from Azure's client. The default is the value of the environment variable
    ``EVENTPROC_RECEIVE_PATH`` at the time when the options are built, or ``DIRECT``."""

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)
        if self.ca_bundle is not None and self.ssl_context is not None:
            raise ConfigurationError("give ca_bundle or ssl_context, not both", setting="ca_bundle")
