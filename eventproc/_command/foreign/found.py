"""What is found at another program's place: positions of a group, and who still moves them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from checkpointstores._fields import require_partition_id
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET, BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.errors import ConfigurationError
from eventproc.models._checkpoint import SEQUENCE_NUMBER_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPosition:
    """The last handled event of a partition; at least one of its two names is known."""

    partition_id: str
    offset: str | None
    sequence_number: int | None
    where: str
    """The blob, the file or the group that has it, for messages."""

    known_since: datetime | None = None
    """When the position was written, or the hub known; ``None`` if nothing tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """All that was found of a group."""

    positions: Sequence[FoundPosition] = ()
    consumers: Sequence[str] = ()
    """What shows that the group's consumers run, in words."""

    notes: Sequence[str] = ()
    """What the user should know before answering."""


def position_before(
    partition_id: object, following: object, where: str, known_since: datetime | None = None
) -> FoundPosition:
    """Return the position before the *next* event to read, which Spark and Kafka store.

    Raises:
        ConfigurationError: It is no position, or not one of a partition.
    """
    is_number = isinstance(following, int) and not isinstance(following, bool)
    if not is_number or not 0 <= following <= SEQUENCE_NUMBER_MAX:  # type: ignore[operator]
        raise ConfigurationError(
            f"{where}: partition {partition_id!r} is at {following!r:.100}, which is no number of "
            "an event: the next one to read is expected"
        )
    last = int(following) - 1  # type: ignore[call-overload]
    return FoundPosition(
        partition_id=require_partition_id(str(partition_id)),
        offset=BEFORE_FIRST_OFFSET if last < 0 else None,
        sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER if last < 0 else last,
        where=where,
        known_since=known_since,
    )
