"""What Spark writes into its offset log for us. Pure."""

from collections.abc import Mapping
from typing import Final

from eventproc.errors import ConfigurationError
from spark_integration.planning import Offsets, in_order

FORMAT_VERSION: Final = 1

Json = Mapping[str, object]


def to_json(hub: str, offsets: Offsets) -> dict[str, object]:
    """An offset as Spark keeps it. Equal offsets give equal texts: Spark compares the texts."""
    return {
        "version": FORMAT_VERSION,
        "hub": hub,
        "next": {partition_id: offsets[partition_id] for partition_id in in_order(offsets)},
    }


def from_json(hub: str, offset: Json) -> dict[str, int]:
    """Read an offset back.

    Raises:
        ConfigurationError: it is of another hub, or of a later release.
    """
    if offset.get("version") != FORMAT_VERSION:
        raise ConfigurationError(
            f"the query's checkpointLocation has offsets of version {offset.get('version')!r}, and "
            f"this release reads version {FORMAT_VERSION}: run the release that wrote them"
        )
    if offset.get("hub") != hub:
        raise ConfigurationError(
            f"the query's checkpointLocation belongs to hub {offset.get('hub')!r}, and the options "
            f"lead to {hub!r}: give this query a checkpointLocation of its own"
        )
    following = offset.get("next")
    assert isinstance(following, Mapping), offset
    return {str(partition_id): int(number) for partition_id, number in following.items()}
