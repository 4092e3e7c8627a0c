"""The names of options, and their replacing the names of settings in error messages.

The library's errors name a setting as a Python argument; a user of the command gave an option.
"""

import re
from collections.abc import Mapping
from typing import Final

_SAME_NAME: Final = (
    *("batch_min", "batch_wait", "consumer_group", "create_container", "dead_letters"),
    *("deployment_id", "failover_timeout", "key_concurrency", "lease_mode"),
    *("owner_id", "shutdown_timeout", "stall_timeout", "static_membership", "capacity"),
    *("ordinal", "placement", "recreated_hub", "roster", "weight"),
)

OPTIONS: Final[Mapping[str, str]] = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAME},
    "account_url": "--storage-account",
    "attempts_max": "--attempts",
    "batch_size_max": "--batch-size",
    "ca_bundle": "--ca-bundle",
    "checkpoint_interval": "--checkpoint-interval",
    "create_table": "--create-container",
    "custom_endpoint": "--custom-endpoint",
    "deliveries_max": "--deliveries",
    "drain_target": "--drain-target",
    "duration": "--hours",
    "eventhub_name": "--eventhub",
    "fully_qualified_namespace": "--namespace",
    "http_proxy": "--proxy",
    "initial_position": "--start",
    "interval": "--checkpoint-interval",
    "key_selector": "--key-property",
    "latency": "--latency-ms",
    "lists": "--price-per-10k-lists",
    "load_balancing_interval": "--interval",
    "load_balancing_strategy": "--strategy",
    "load": "--load",
    "max_events": "--checkpoint-events",
    "ownership_expiration": "--expiration",
    "partition_count": "--partitions",
    "partition_rate_max": "--partition-rate",
    "process_rate": "--process-rate",
    "processor_count": "--processors",
    "rate_max": "--rate",
    "rate_of_one": "--rate-of-one",
    "replicas_max": "--max",
    "replicas_min": "--min",
    "start_time": "--start-time",
    "topic": "--eventhub",
    "writes": "--price-per-10k-writes",
}
"""The option of each setting."""

_NAMES: Final = "|".join(name for name in OPTIONS if "_" in name)
_WORDS: Final = "|".join(name for name in OPTIONS if "_" not in name)
# A name without an underscore may be an ordinary word, so it is replaced only where the
# library's messages put a name.
_SETTING: Final = re.compile(
    rf"\b({_NAMES})\b(?:=True)?|^({_WORDS})(?= is )|(?<=\bpass )({_WORDS})\b"
)

_PHRASES: Final = (
    (re.compile(r"EventProcessorConfig\."), ""),
    (re.compile(r"^config sets (?='[^']+', which cannot be set)"), "the address of the hub sets "),
    (re.compile(r"^bootstrap_servers (?=is )"), "the part after kafka:// "),
    (re.compile(r"^pod_name (?=is )"), "the name of this pod "),
    (re.compile(r", or pass pod_name$"), ""),
    (
        re.compile(r"\bpass kubeconfig, the path of a file of kubectl$"),
        "give --roster MODULE:NAME of a roster that you made with kubeconfig=PATH, as of kubectl",
    ),
    (
        re.compile(r"\bpass its name and its namespace to the roster$"),
        "give --roster MODULE:NAME of a roster that you made with the right name and namespace",
    ),
    (
        re.compile(r"give a function that makes one, such as lambda: (\w+)\(\.\.\.\)$"),
        r"define a function that makes one, `def make(): return \1(...)`, and give MODULE:make",
    ),
    (re.compile(r"\buse ReplicaSetRoster\b"), "use --roster replicaset"),
    (re.compile(r"\band StatefulSetRoster\b"), "and --roster statefulset"),
)


def in_options(message: str) -> str:
    """Return the message with each setting replaced by its option, and without words of Python."""
    message = message.replace("a timedelta", "a duration").removesuffix(" or None")
    for pattern, words in _PHRASES:
        message = pattern.sub(words, message)
    return _SETTING.sub(lambda found: OPTIONS[found[1] or found[2] or found[3]], message)
