"""The names of leases in which other programs keep the position of a partition. Pure.

Those of the Azure SDKs' records are in ``checkpointstores/blob/_layout.py``. All names are compared
without case, and the namespace without its port.
"""

import re
from collections.abc import Callable
from typing import Final

from checkpointstores._fields import are_names_of
from eventproc.models import ConsumerGroup

LeaseName = Callable[[str, ConsumerGroup, str], str | None]
"""Returns the partition of a lease by the blob's name, the group and a prefix; ``None``: none."""


_ESCAPED: Final = re.compile("::([0-9A-Fa-f]{4})|:([0-9A-Fa-f]{2})")
"""A character in a name that Azure Functions escaped."""


def lease_of_functions(name: str, group: ConsumerGroup, prefix: str) -> str | None:
    """Functions before version 5: ``{namespace}/{hub}/{group}/{partition}``, escaped or not."""
    del prefix
    *names, partition_id = name.split("/")
    plain = [_ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), n) for n in names]
    is_of_group = are_names_of(names, group) or are_names_of(plain, group)
    return partition_id if is_of_group and partition_id.isdigit() else None


def lease_of_host(name: str, group: ConsumerGroup, prefix: str) -> str | None:
    """``EventProcessorHost`` of .NET and Java, and Logstash: ``{prefix}{group}/{partition}``."""
    folder, _, partition_id = name.rpartition("/")
    is_of_group = folder.lower() == f"{prefix}{group.name}".lower()
    return partition_id if is_of_group and partition_id.isdigit() else None


def lease_by_number(name: str, group: ConsumerGroup, prefix: str) -> str | None:
    """Go, Python 1 and Filebeat 1: ``{prefix}{partition}``, without hub and group."""
    del group
    partition_id = name[len(prefix) :]
    return partition_id if name.startswith(prefix) and partition_id.isdigit() else None


def lease_of_dapr(name: str, group: ConsumerGroup, prefix: str) -> str | None:
    """Dapr before Azure's new SDK for Go: ``dapr-{hub}-{group}-{partition}``."""
    del prefix
    known, _, partition_id = name.rpartition("-")
    is_of_group = known.lower() == f"dapr-{group.eventhub_name}-{group.name}".lower()
    return partition_id if is_of_group and partition_id.isdigit() else None
