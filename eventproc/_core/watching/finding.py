"""What needs attention in a group, as a value."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The kinds of findings, the most urgent first."""

    NOT_RUNNING = "not running"
    DAMAGED = "damaged checkpoint"
    UNOWNED = "no owner"
    NOT_MOVING = "no progress"
    CONFLICT = "conflict"
    PAUSED = "paused"
    BEHIND = "falls behind"
    LATE = "late member"
    STOPPED = "stopped"
    PLACEMENTS = "placements differ"


STUCK: Final = frozenset({Kind.NOT_RUNNING, Kind.DAMAGED, Kind.UNOWNED, Kind.NOT_MOVING})
"""Findings that mean that events of a partition are not handled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that needs attention."""

    kind: Kind
    text: str
    remedy: str
    since_s: float
    partition_ids: tuple[str, ...] = ()
    member_ids: tuple[str, ...] = ()

    @property
    def is_stuck(self) -> bool:
        """Whether events are not handled."""
        return self.kind in STUCK


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRules:
    """The times after which something needs attention."""

    expiration_s: float
    stuck_after_s: float
