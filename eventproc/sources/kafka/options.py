"""How a ``KafkaEventSource`` reads, and which settings of librdkafka it takes from its user.

Rule: ownership and checkpoints are ours. A setting by which the client would join a group, commit
or choose a position by itself is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc.errors import ConfigurationError

BYTES_MIN: Final = 64 * 1024

_OURS: Final = "a partition is owned through the checkpoint store, not through a Kafka group"
_PLACE: Final = "progress is kept in the checkpoint store, and never committed to Kafka"
_START: Final = (
    "where to begin is EventProcessorConfig.initial_position; a position that is lost is told, "
    "never skipped in silence"
)

REFUSED: Final[Mapping[str, str]] = {
    "group.id": "it is the processor's consumer_group",
    "group.instance.id": _OURS,
    "group.protocol": _OURS,
    "group.protocol.type": _OURS,
    "group.remote.assignor": _OURS,
    "partition.assignment.strategy": _OURS,
    "on_commit": _PLACE,
    "enable.auto.commit": _PLACE,
    "enable.auto.offset.store": _PLACE,
    "auto.commit.enable": _PLACE,
    "auto.commit.interval.ms": _PLACE,
    "offset.store.method": _PLACE,
    "offset.store.path": _PLACE,
    "offset.store.sync.interval.ms": _PLACE,
    "auto.offset.reset": _START,
    "enable.partition.eof": "the end of a partition is how the source knows that there is no lag",
    "allow.auto.create.topics": "a misspelt topic would be made instead of refused",
    "bootstrap.servers": "it is the first argument",
    "metadata.broker.list": "the servers are the first argument",
    "error_cb": "errors of the client become errors of the source",
}
"""Settings that would break a promise, and why."""

DEFAULTS: Final[Mapping[str, object]] = {
    "client.id": "eventproc",
    "isolation.level": "read_committed",
    # An event is sent as soon as it is there. This is how long the broker holds an answer back
    # when there is none: and how long a partition that is opened may wait for its first fetch.
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 100,
    "max.partition.fetch.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 16 * 1024,
    "reconnect.backoff.max.ms": 1000,
    # What the client writes to standard error otherwise, for each failing attempt to connect.
    "log_level": 2,
}
"""What the client is told unless the user says otherwise."""

FIXED: Final[Mapping[str, object]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
"""What the client is told in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """How to read. The defaults suit most topics."""

    prefetch: int = 10_000
    """Most events that wait in memory for each partition, but for one read of the client: reading
    the partition pauses above that, and goes on when half of them are taken."""

    prefetch_bytes: int = 4 * 1024 * 1024
    """The same in bytes of events; whichever is reached first counts."""

    connect_timeout: timedelta = timedelta(seconds=15)
    """The budget of one question to the broker, connecting included."""

    def __post_init__(self) -> None:
        """Refuse, with the remedy, what cannot work."""
        if self.prefetch < 1:
            raise ConfigurationError(f"prefetch is {self.prefetch}: give 1 or more")
        if self.prefetch_bytes < BYTES_MIN:
            raise ConfigurationError(
                f"prefetch_bytes is {self.prefetch_bytes}: give {BYTES_MIN} or more"
            )
        if self.connect_timeout <= timedelta(0):
            raise ConfigurationError(
                f"connect_timeout is {self.connect_timeout}: give a positive time"
            )


def check_config(config: Mapping[str, object]) -> None:
    """Refuse settings that would break a promise of the source.

    Raises:
        ConfigurationError: there is one; the message says why, and does not repeat its value.
    """
    for name in config:
        reason = REFUSED.get(name)
        if reason is not None:
            raise ConfigurationError(f"config sets {name!r}, which cannot be set: {reason}")
