"""The settings of a ``RabbitStreams``."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

from eventproc.errors import ConfigurationError
from eventproc.settings import Count, PositiveSpan, Within, check_settings
from eventproc.sources.amqp.fields import PROPERTY_NAMES

BYTES_MIN: Final = 64 * 1024

PROPERTY: Final = "property:"
ANNOTATION: Final = "annotation:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Every setting of a ``RabbitStreams``. The defaults suit most streams."""

    key: str = "group-id"
    """Which part of a message is its ``partition_key``: one of AMQP's properties by its name
    (``message-id``, ``subject``, ``group-id``...), an application property (``property:customer``),
    or an annotation (``annotation:x-routing-key``). A stream does not store the routing key by
    which the publisher chose it, so it has to be in the message."""

    prefetch: Count = 10_000
    """Most events that wait in memory for each partition. The broker sends whole chunks, so one
    chunk may exceed it."""

    prefetch_bytes: Annotated[int, Within(least=BYTES_MIN)] = 4 * 1024 * 1024
    """Most bytes of events that wait in memory for each partition, within one chunk. The source
    asks for no more chunks at whichever of the two limits is reached first."""

    connect_timeout: PositiveSpan = timedelta(seconds=15)
    """Longest time for one request to the broker, connecting included."""

    heartbeat: Annotated[timedelta, Within(least=timedelta(seconds=1))] = timedelta(seconds=20)
    """How often each side sends a heartbeat, in whole seconds. A connection that received nothing
    for twice that time counts as broken."""

    uses_advertised_address: bool = True
    """Whether to connect to the address that the broker advertises for a stream's leader. Set it to
    ``False`` if the broker is a single node behind a forwarded port, and its advertised address
    cannot be reached."""

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)
        is_named = self.key.startswith((PROPERTY, ANNOTATION)) and not self.key.endswith(":")
        if not is_named and self.key not in PROPERTY_NAMES:
            raise ConfigurationError(
                f"key is {self.key!r}: give {PROPERTY}NAME, {ANNOTATION}NAME, or one of "
                f"{', '.join(PROPERTY_NAMES)}"
            )
