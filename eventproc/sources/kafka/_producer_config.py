"""Which settings of librdkafka a publisher accepts.

Rule: a message counts as published when every replica in sync has it, and the caller decides how
long to wait. A setting that weakens this is refused.
"""

from collections.abc import Mapping
from typing import Final

from eventproc.sources.kafka._options import APART

_ALL: Final = "a message counts as published when every replica in sync has stored it"
_WAIT: Final = "how long to wait for an acknowledgement is said with what is published"
_OUTCOME: Final = "the publisher itself needs the outcome of each message"

REFUSED: Final[Mapping[str, str]] = {
    "acks": _ALL,
    "request.required.acks": _ALL,
    "message.timeout.ms": _WAIT,
    "delivery.timeout.ms": _WAIT,
    "default.topic.config": APART,
    "on_delivery": _OUTCOME,
    "delivery.report.only.error": _OUTCOME,
    "dr_cb": _OUTCOME,
    "dr_msg_cb": _OUTCOME,
    "error_cb": "errors of the client become errors of the publisher",
    "transactional.id": "messages are published at least once, without transactions",
    "allow.auto.create.topics": "a misspelt topic would be created instead of refused",
    "bootstrap.servers": "the servers are given apart",
    "metadata.broker.list": "the servers are given apart",
}
"""Settings of librdkafka that are refused, and why."""

DEFAULTS: Final[Mapping[str, object]] = {
    # Keeps the order of messages that the client sends again.
    "enable.idempotence": True,
    # The partition of a key is the one that Kafka's own clients choose.
    "partitioner": "murmur2_random",
}
"""Settings of the client that the user may override."""

FIXED: Final[Mapping[str, object]] = {
    "acks": "all",
    "message.timeout.ms": 0,  # no limit: the publisher has its own
    "allow.auto.create.topics": False,
}
"""Settings of the client that the user cannot override."""

MESSAGE_BYTES_MAX: Final = 1_000_000
"""The client's own default of ``message.max.bytes``."""
