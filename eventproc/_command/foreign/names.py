"""The names of blobs in which other programs keep the position of a partition. Pure.

Names are compared without case: .NET, JavaScript and Python write the names of namespace, hub and
group in lower case, Go, Java and Rust as they are configured. The namespace may lack its port.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from eventproc.models import ConsumerGroup

LeaseName = Callable[[str, ConsumerGroup, str], str | None]
"""Returns the partition of a lease by the blob's name, the group and a prefix; ``None``: none."""


@dataclass(frozen=True, slots=True)
class BlobLayout:
    """Where a program keeps its positions in a container."""

    leases: Sequence[LeaseName] = ()
    """The forms of a lease's name; the first one that any blob has is the program's."""

    has_records: bool = True
    """Whether there are records of an Azure SDK."""


_ESCAPED: Final = re.compile("::([0-9A-Fa-f]{4})|:([0-9A-Fa-f]{2})")
"""A character in a name that Azure Functions escaped."""


def record_of(name: str, group: ConsumerGroup) -> tuple[str, str] | None:
    """Return kind and partition of a record of the Azure SDKs: ``("checkpoint", "0")``.

    ``None`` for a blob of another group, or of another kind.
    """
    parts = name.split("/")
    if len(parts) != len(("namespace", "hub", "group", "kind", "partition")):
        return None
    *names, kind, partition_id = parts
    kind = kind.lower()
    is_record = kind in {"checkpoint", "ownership"} and bool(partition_id)
    return (kind, partition_id) if is_record and _are_of(names, group) else None


def lease_of_functions(name: str, group: ConsumerGroup, prefix: str) -> str | None:
    """Functions before version 5: ``{namespace}/{hub}/{group}/{partition}``, escaped or not."""
    del prefix
    *names, partition_id = name.split("/")
    plain = [_ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), n) for n in names]
    is_of_group = _are_of(names, group) or _are_of(plain, group)
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


def _are_of(names: list[str], group: ConsumerGroup) -> bool:
    if len(names) != len(group.key):
        return False
    namespace, *rest = (name.lower() for name in names)
    ours, *others = group.key
    return rest == others and _host(namespace) == _host(ours)


def _host(namespace: str) -> str:
    """Return a namespace without its port: the JavaScript SDK leaves it out."""
    host, _, port = namespace.rpartition(":")
    return host if host and port.isdigit() else namespace
