"""A group as one reading of its records and its hub shows it.

Spans of time are ages by the store's clock. ``at_s`` is a monotonic time in seconds, set to the
store's clock once, so that readings can be ordered and subtracted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from eventproc._core.ownership.pauses import Pause
from eventproc.models import NOT_BEGUN, Isolation, Member


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEnd:
    """What the hub answered about one partition."""

    at_s: float
    """The time of the request."""

    last: int
    """The sequence number of the newest event."""

    lag: int
    """Events after the checkpoint."""

    newest_ago_s: float | None = None
    """The age of the newest event; ``None`` if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPartition:
    """One partition, or one named resource."""

    partition_id: str
    name: str
    """What an operator calls it."""

    owner_id: str | None = None
    """``None`` if it was never claimed or was released."""

    is_expired: bool = False
    """Its owner did not renew in time."""

    renewed_ago_s: float | None = None
    """Seconds since the ownership record was written, by a claim, a renewal or a release; ``None``
    without a record."""

    epoch: int = 0
    """The fencing token of the newest claim; 0 if the record has none."""

    position: int | None = None
    """The sequence number of the last handled event, by the checkpoint."""

    written_ago_s: float | None = None
    """Seconds since the checkpoint was written; ``None`` without a checkpoint."""

    is_moved_by_operator: bool = False
    """An operator moved the checkpoint, and no owner has begun there yet."""

    error: str | None = None
    """If the checkpoint cannot be read or is of a former hub, why, with the remedy: the partition
    is not served."""

    isolation: Isolation = NOT_BEGUN
    """As in ``Checkpoint``; 0 as long as the whole checkpoint was not read."""

    done_above_count: int = 0
    """Events above the position that are handled; 0 as long as that was not read."""

    pause: Pause | None = None
    """What pauses it: its own pause, or that of the whole group."""

    end: HubEnd | None = None
    """``None`` if this was not read from the hub."""

    @property
    def server_id(self) -> str | None:
        """The owner, if it is alive."""
        return None if self.is_expired else self.owner_id

    @property
    def lag(self) -> int | None:
        """Events in the hub after the checkpoint; ``None`` if the hub was not asked."""
        return None if self.end is None else self.end.lag

    @property
    def has_work(self) -> bool:
        """Whether events wait to be handled now, as far as is known: not during a pause."""
        return self.pause is None and bool(self.lag)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMember:
    """One processor."""

    record: Member
    """Its member record; of a processor of an Azure SDK, which writes none, what is known of it."""

    has_record: bool = True
    is_live: bool = True
    partition_count: int = 0
    """How many partitions it owns."""

    silent_s: float | None = None
    """Seconds since it wrote any record; ``None`` if that is not known."""

    @property
    def owner_id(self) -> str:
        """Its owner id."""
        return self.record.owner_id


@dataclass(frozen=True, kw_only=True)
class WatchedGroup:
    """A whole group at one time."""

    at_s: float
    partitions: tuple[WatchedPartition, ...] = ()
    members: tuple[WatchedMember, ...] = ()
    """The live ones, and those that did not renew in time and still are named as owners."""

    @cached_property
    def partition_by_id(self) -> dict[str, WatchedPartition]:
        """The partitions by their ids."""
        return {partition.partition_id: partition for partition in self.partitions}

    @cached_property
    def member_by_id(self) -> dict[str, WatchedMember]:
        """The members by their owner ids."""
        return {member.owner_id: member for member in self.members}

    @cached_property
    def live_ids(self) -> frozenset[str]:
        """The owner ids of the live members."""
        return frozenset(member.owner_id for member in self.members if member.is_live)


NAMES_MAX = 6
"""The most names in a sentence; of more, it has some and the number of the others."""


def listed(names: Iterable[str]) -> str:
    """Return names as they stand in a sentence: a few of them, and the number of the others."""
    found = list(names)
    if len(found) <= NAMES_MAX:
        return " and ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))
    return f"{', '.join(found[: NAMES_MAX - 1])} and {len(found) - NAMES_MAX + 1} more"


def span_text(seconds: float) -> str:
    """Return a span of time in one unit: ``45 s``, ``3 min``, ``2.5 h``."""
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:.0f} s"
    if seconds < 7200:  # noqa: PLR2004 - two hours
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
