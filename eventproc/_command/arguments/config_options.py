"""The options for settings of a processor's config, by setting.

``ConfigOptions`` takes their types and defaults from the config, and their names from
``option_names``.
"""

from copy import copy
from typing import Any, Final

from typer import Option

from eventproc._core.placement.names import PLACEMENTS

BALANCING: Final[dict[str, Any]] = {
    "load_balancing_strategy": Option(
        help="How partitions change owners. cooperative: a live owner hands surplus partitions "
        "over. greedy: one surplus partition is stolen in each cycle. balanced: at most one claim "
        "or steal in each cycle. release: as cooperative, but the owner releases a partition, and "
        "its new owner claims it.",
    ),
    "placement": Option(
        help=f"Which processor should have which partition: {', '.join(PLACEMENTS)}, with settings "
        "as in Ring:bound=1.25, or MODULE:NAME for a placement of your own. With "
        "Published: before it, one processor computes the plan for all. Should be the same for all "
        "processors of a group.",
    ),
    "load_balancing_interval": Option(help="The time between two polls of the group's records."),
    "ownership_expiration": Option(
        envvar="EVENTPROC_EXPIRATION",
        help="After this long without a renewal, the owner of a partition counts as dead and "
        "another processor may claim it. Must be the same for all processors of a group.",
    ),
}
"""Of ``run`` and ``simulate``."""

PROCESSOR: Final[dict[str, Any]] = {
    "deployment_id": Option(
        metavar="NAME",
        help="The deployment that this process belongs to, such as the tag of its image. While "
        "processors of another deployment are running, it waits on standby until one leaves.",
    ),
    "static_membership": Option(
        help="On a stop, keep the partitions for the next start with the same --owner-id.",
    ),
    "initial_position": Option(
        help="Where to start in a partition without a checkpoint: earliest, latest, a time "
        "(2026-01-31T08:00:00Z) or a sequence number.",
    ),
    "recreated_hub": Option(
        help="What happens if the hub was deleted and created again since the last checkpoint. "
        "stop: nothing is handled until you move the checkpoints. earliest: start at the first "
        "event of the new hub.",
    ),
    **BALANCING,
    "weight": Option(
        metavar="N",
        help="The share of this process relative to the others. Only with --placement Weighted.",
    ),
    "capacity": Option(
        metavar="N",
        help="The most partitions that this process takes. Only with --placement Weighted. By "
        "default there is no limit.",
    ),
    "ordinal": Option(
        metavar="N",
        help="The number of this process, from 0. Only with --placement Ordinal. By default the "
        "number at the end of --owner-id.",
    ),
    "shutdown_timeout": Option(
        help="The longest time that a stop may take: at least three times your longest call."
    ),
    "checkpoint_policy.max_events": Option(
        metavar="N", help="Write a checkpoint after this number of events."
    ),
    "checkpoint_policy.interval": Option(
        help="Write a checkpoint at the latest after this time, and when a partition closes."
    ),
    "batch_size_max": Option(metavar="N", help="The most events in one call of the handler."),
    "batch_min": Option(
        metavar="N",
        help="Call the handler when there are N events, or after --batch-wait. By default N is "
        "--batch-size.",
    ),
    "batch_wait": Option(
        help="How long a call may wait for more events after its first one. By default it does "
        "not wait; process_columns waits 10ms.",
    ),
    "stall_timeout": Option(
        help="Report a partition that has events and completes none of them for this long, and "
        "open its receiver again if that returns no events.",
    ),
    "failover_timeout": Option(
        help="Cancel the calls of a partition that has events and completes none of them for this "
        "long, and give it to another process. By default it stays here.",
    ),
    "rate_max": Option(
        metavar="N",
        help="The most events per second of one process, in all its partitions together. Each "
        "process of the group, and each of --workers, has this limit for itself.",
    ),
    "partition_rate_max": Option(
        metavar="N", help="The most events per second in each partition, whichever process has it."
    ),
    "failure_policy.attempts_max": Option(
        metavar="N",
        help="Give up an event after N failed attempts. By default it is retried for ever.",
    ),
    "failure_policy.deliveries_max": Option(
        metavar="N",
        help="Give up an event after N deliveries that killed the process (3 or more). By default "
        "deliveries are not counted.",
    ),
    "key_concurrency": Option(
        metavar="N",
        help="Handle up to N keys of one partition at once, each key in order. Above 1, the "
        "handler cannot store state.",
    ),
}
"""Of ``run``."""


def _of_resources(option: Any) -> Any:  # noqa: ANN401 - typer's type of options is private
    """Return the same option with a help text that speaks of resources."""
    option = copy(option)
    option.help = option.help.replace("partition", "resource")
    return option


RESOURCES: Final[dict[str, Any]] = {
    setting: _of_resources(PROCESSOR[setting])
    for setting in (
        *("deployment_id", "static_membership", *BALANCING, "weight", "capacity", "ordinal"),
        "shutdown_timeout",
    )
}
"""Of ``hold``: those of ``run`` that have nothing to do with events."""
