"""Replace the names of settings in error messages by the names of options.

The library's errors name a setting as a Python argument; a user of the command gave an option.
"""

import re
from collections.abc import Mapping
from typing import Final

_OPTIONS: Final[Mapping[str, str]] = {
    "attempts_max": "--attempts",
    "consumer_group": "--consumer-group",
    "create_container": "--create-container",
    "dead_letters": "--dead-letters",
    "deliveries_max": "--deliveries",
    "duration": "--hours",
    "interval": "--checkpoint-interval",
    "max_events": "--checkpoint-events",
    "eventhub_name": "--eventhub",
    "fully_qualified_namespace": "--namespace",
    "initial_position": "--start",
    "static_membership": "--static-membership",
    "key_concurrency": "--key-concurrency",
    "key_selector": "--key-property",
    "latency": "--latency-ms",
    "lease_mode": "--lease-mode",
    "lists": "--price-per-10k-lists",
    "load_balancing_interval": "--interval",
    "load_balancing_strategy": "--strategy",
    "owner_id": "--owner-id",
    "ownership_expiration": "--expiration",
    "partition_count": "--partitions",
    "partition_rate_max": "--partition-rate",
    "processor_count": "--processors",
    "rate_max": "--rate",
    "shutdown_timeout": "--shutdown-timeout",
    "stall_timeout": "--stall-timeout",
    "topic": "--eventhub",
    "writes": "--price-per-10k-writes",
}

_NAMES: Final = "|".join(name for name in _OPTIONS if "_" in name)
_WORDS: Final = "|".join(name for name in _OPTIONS if "_" not in name)
# A name without an underscore may be an ordinary word, so it is replaced only where the
# library's messages put a name.
_SETTING: Final = re.compile(rf"\b({_NAMES})\b|^({_WORDS})(?= is )|(?<=\bpass )({_WORDS})\b")


def in_options(message: str) -> str:
    """Return the message with each setting replaced by its option."""
    return _SETTING.sub(lambda found: _OPTIONS[found[0]], message)
