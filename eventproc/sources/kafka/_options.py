"""The settings of a ``KafkaEventSource``, and which settings of librdkafka it accepts.

Rule: ownership and checkpoints belong to eventproc. A setting by which the client would join a
group, commit or choose a position is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

from eventproc._base.settings import Count, PositiveSpan, Within, check_settings
from eventproc.errors import ConfigurationError

BYTES_MIN: Final = 64 * 1024

_OURS: Final = "a partition is owned through the checkpoint store, not through a Kafka group"
_PLACE: Final = "progress is kept in the checkpoint store, and never committed to Kafka"
_START: Final = (
    "where to begin is the processor's initial position; a position that does not exist any more "
    "is reported, never skipped silently"
)

APART: Final = "give the settings in it by their own names"

REFUSED: Final[Mapping[str, str]] = {
    "group.id": "it is the processor's consumer group",
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
    "default.topic.config": APART,
    "enable.partition.eof": "the end of a partition is how the source knows that there is no lag",
    "allow.auto.create.topics": "a misspelt topic would be created instead of refused",
    "bootstrap.servers": "it is the first argument",
    "metadata.broker.list": "the servers are the first argument",
    "error_cb": "errors of the client become errors of the source",
}
"""Settings of librdkafka that are refused, and why."""

DEFAULTS: Final[Mapping[str, object]] = {
    "isolation.level": "read_committed",
    # The broker sends an event as soon as it exists. This is how long it delays an answer without
    # events, and how long a newly assigned partition may wait for its first fetch.
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 100,
    "max.partition.fetch.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 16 * 1024,
    # The client fetches no more of a partition while it has this many messages. At its default of
    # 100,000, most have left the CPU's cache when they are read.
    "queued.min.messages": 30_000,
}
"""Settings of the client that the user may override."""

FIXED: Final[Mapping[str, object]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
"""Settings of the client that the user cannot override."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """Every setting of a ``KafkaEventSource``. The defaults suit most topics."""

    prefetch: Count = 10_000
    """Most events that wait in memory for each partition. Above it the source pauses reading the
    partition until half of the events are taken. One read of the client may exceed it by up to
    500 events."""

    prefetch_bytes: Annotated[int, Within(least=BYTES_MIN)] = 4 * 1024 * 1024
    """Most bytes of events that wait in memory for each partition. The source pauses reading at
    whichever of the two limits is reached first."""

    connect_timeout: PositiveSpan = timedelta(seconds=15)
    """Longest time for one request to the broker, connecting included. A client that hears nothing
    for three times as long is replaced."""

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)


def check_config(config: Mapping[str, object], refused: Mapping[str, str] = REFUSED) -> None:
    """Check settings for librdkafka.

    Raises:
        ConfigurationError: one is in *refused*; the message says why, and does not contain the
            setting's value.
    """
    for name in config:
        reason = refused.get(name)
        if reason is not None:
            raise ConfigurationError(f"{name!r} cannot be set: {reason}", setting="config")
