"""The option of each setting that an error of the library may concern.

The library's errors carry the setting's name in Python; a user of the command gave an option.
"""

from collections.abc import Mapping
from typing import Final

_SAME_NAME: Final = (
    *("batch_min", "batch_wait", "consumer_group", "cooldown", "dead_letters"),
    *("deployment_id", "failover_timeout", "key_concurrency"),
    *("owner_id", "shutdown_timeout", "stall_timeout", "static_membership", "capacity"),
    *("ordinal", "placement", "recreated_hub", "roster", "weight"),
)

OPTIONS: Final[Mapping[str, str]] = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAME},
    "account_url": "--storage-account",
    "attempts_max": "--attempts",
    "batch_size_max": "--batch-size",
    "bootstrap_servers": "the part after kafka://",
    "ca_bundle": "--ca-bundle",
    "checkpoint_interval": "--checkpoint-interval",
    "config": "the address of the hub",
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
    "pod_name": "the name of this pod",
    "process_rate": "--process-rate",
    "processor_count": "--processors",
    "rate_max": "--rate",
    "rate_of_one": "--rate-of-one",
    "replicas_max": "--max",
    "replicas_min": "--min",
    "start_time": "--start-time",
    "topic": "--eventhub",
    "weights": "--weight",
    "writes": "--price-per-10k-writes",
}
"""The option of each setting; what has none is named in words."""
