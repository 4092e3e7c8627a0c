"""Converts offsets to and from the JSON in Spark's offset log. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from eventproc.errors import ConfigurationError
from spark_integration.source.planning import Offsets, in_order

FORMAT_VERSION: Final = 1

Json = Mapping[str, object]


def to_json(
    hub: str, offsets: Offsets, hub_created_at: datetime | None = None
) -> dict[str, object]:
    """Return an offset's JSON. Equal offsets give equal JSON, because Spark compares the texts.

    Args:
        hub: Namespace and hub.
        offsets: The positions.
        hub_created_at: When the hub that has them was created; ``None`` if its source does not say.
    """
    created = {} if hub_created_at is None else {"created": hub_created_at.isoformat()}
    return {
        "version": FORMAT_VERSION,
        "hub": hub,
        **created,
        "next": {partition_id: offsets[partition_id] for partition_id in in_order(offsets)},
    }


def from_json(hub: str, offset: Json) -> dict[str, int]:
    """Return the offset in a JSON object.

    Raises:
        ConfigurationError: it belongs to another hub, or a later release wrote it.
    """
    if offset.get("version") != FORMAT_VERSION:
        raise ConfigurationError(
            f"the query's checkpointLocation has offsets of version {offset.get('version')!r}, but "
            f"this release reads version {FORMAT_VERSION}: run the release that wrote them"
        )
    if offset.get("hub") != hub:
        raise ConfigurationError(
            f"the query's checkpointLocation belongs to hub {offset.get('hub')!r}, but the options "
            f"name {hub!r}: give this query a checkpointLocation of its own"
        )
    following = offset.get("next")
    assert isinstance(following, Mapping), offset
    return {str(partition_id): int(number) for partition_id, number in following.items()}


def hub_created_in(offset: Json) -> datetime | None:
    """Return when the hub of an offset was created; ``None`` if the offset does not say."""
    created = offset.get("created")
    return None if created is None else datetime.fromisoformat(str(created))
