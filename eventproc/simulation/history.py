"""What happened in a world: plain values, from which every figure and every picture is made.

All times are virtual seconds since the world began, and every list is in the order of time.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An ownership record came to name somebody else, or nobody."""

    at_s: float
    partition_id: str
    owner_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event of the script began."""

    at_s: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A process began to run, or it is gone: crashed, or stopped."""

    at_s: float
    owner_id: str
    is_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Who shall have a share from now on, and of how many partitions."""

    at_s: float
    members: frozenset[str]
    partition_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A processor asked the store for ownership or for members."""

    at_s: float
    owner_id: str
    is_look: bool
    """Whether it asked for ownership: one such question is one cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Something happened so many times at once."""

    at_s: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An event was handled (or, at the end, still was not) this long after it was published."""

    at_s: float
    seconds: float


@dataclass(slots=True, kw_only=True)
class History:
    """Everything that was seen."""

    duration_s: float
    happenings: list[Happening] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    writes: list[Count] = field(default_factory=list)
    """Writes of ownership and presence records; not of checkpoints."""

    checkpoint_operations: list[Count] = field(default_factory=list)
    """Reads, listings and writes of checkpoints."""

    conflicts: list[Count] = field(default_factory=list)
    """Claims that somebody else won."""

    steals: list[Count] = field(default_factory=list)
    """Takings from live owners, one entry for each cycle with any."""

    duplicates: list[Count] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
