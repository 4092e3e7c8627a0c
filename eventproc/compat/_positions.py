"""Starting positions of Azure's client, as those of a processor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from eventproc.models import EventPosition

Position: TypeAlias = str | int | datetime
"""``"-1"``, ``"@latest"``, an offset, a sequence number or a time of enqueuing."""


@dataclass(frozen=True, kw_only=True)
class StartingPositions:
    """Where to begin partitions without a checkpoint."""

    default: EventPosition
    by_partition: Mapping[str, EventPosition] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        position: Position | Mapping[str, Position] | None,
        inclusive: bool | Mapping[str, bool],  # noqa: FBT001 - as the client has it
    ) -> "StartingPositions":
        """Return what the two arguments of ``receive`` mean.

        A partition that a mapping does not name begins at its first event.
        """

        def is_inclusive(partition_id: str) -> bool:
            if isinstance(inclusive, Mapping):
                return inclusive.get(partition_id, False)
            return bool(inclusive)

        named: set[str] = set()
        for given in (position, inclusive):
            named |= set(given) if isinstance(given, Mapping) else set()
        if isinstance(position, Mapping):
            by_partition = {
                name: position_of(position.get(name, "-1"), is_inclusive=is_inclusive(name))
                for name in named
            }
            return cls(default=EventPosition.earliest(), by_partition=by_partition)
        single = "@latest" if position is None else position
        return cls(
            default=position_of(single, is_inclusive=is_inclusive("")),
            by_partition={n: position_of(single, is_inclusive=is_inclusive(n)) for n in named},
        )


def position_of(given: object, *, is_inclusive: bool) -> EventPosition:
    """Return one position.

    Raises:
        TypeError: it is none that Azure's client knows.
    """
    if isinstance(given, datetime):
        utc = given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
        whole_ms = utc.replace(microsecond=utc.microsecond // 1000 * 1000)
        return EventPosition(enqueued_time=whole_ms, is_inclusive=is_inclusive)
    if isinstance(given, int) and not isinstance(given, bool):
        return EventPosition.from_sequence_number(given, is_inclusive=is_inclusive)
    if not isinstance(given, str):
        raise TypeError(
            f"starting_position is {given!r}: give an offset (str), a sequence number (int), a "
            "datetime, '-1', '@latest', or a dict of these by partition id"
        )
    if given == "-1":
        return EventPosition.earliest()
    if given == "@latest":
        return EventPosition.latest()
    return EventPosition.from_offset(given, is_inclusive=is_inclusive)
