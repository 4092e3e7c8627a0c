"""The partitions of a super stream, and the stream of each.

Rule: a partition id comes from its stream's name, not from its place in the broker's answer. So the
other partitions keep their records when partitions are added, whatever their order.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from eventproc.errors import ConfigurationError

ONLY = "0"
"""The partition id of a stream that belongs to no super stream."""


def streams_by_partition(hub: str, streams: Sequence[str]) -> Mapping[str, str]:
    """Return partition ids in the order of the super stream, and the stream of each.

    The stream ``orders-7`` of the super stream ``orders`` is partition ``7``. A stream whose name
    does not begin with that of the super stream is a partition by its whole name.

    Raises:
        ConfigurationError: two streams have the same partition id.
    """
    found: dict[str, str] = {}
    for stream in streams:
        partition_id = stream.removeprefix(f"{hub}-") or stream
        if partition_id in found:
            raise ConfigurationError(
                f"super stream {hub!r} has the streams {found[partition_id]!r} and {stream!r}, "
                f"which would both be partition {partition_id!r}: rename one of them"
            )
        found[partition_id] = stream
    return MappingProxyType(found)
