"""The record of a simulation: plain values, from which reports and plots are made.

All times are virtual seconds since the simulation began, and every list is in order of time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import MemberFacts, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An ownership record changed its owner; ``None``: the partition was released."""

    at_s: float
    partition_id: str
    owner_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEvent:
    """An event of the script started."""

    at_s: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A process started to run, or it ended: crashed, or stopped."""

    at_s: float
    owner_id: str
    is_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The processors that should own partitions from now on, and the partitions of the hub."""

    at_s: float
    members: Mapping[str, MemberFacts]
    """What the placement may know of each processor."""

    partition_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A processor listed ownership records or member records."""

    at_s: float
    owner_id: str
    is_ownership: bool
    """Whether it listed ownership records, which it does once in each cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Something happened *count* times at one moment."""

    at_s: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How long after its publication an event was handled (or, at the end, was still waiting)."""

    at_s: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Voted:
    """A scaler voted on the number of processors."""

    at_seconds: float
    replicas: int | None
    """How many it wants; ``None``: not known yet."""

    reason: str
    running: int
    """Processors that were started and not stopped."""

    load: float
    """Events that arrive in a second."""

    backlog: int
    """Events in the hub that no handler has completed."""


@dataclass(slots=True, kw_only=True)
class History:
    """Everything that a simulation recorded."""

    duration_s: float
    placement: Placement = field(default_factory=Even)
    """By its plan the group is judged: it is balanced if the owners are those planned."""

    events_each: int = 1
    """How many events each one in ``duplicates`` and ``waits`` stands for."""

    script_events: list[ScriptEvent] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    writes: list[Count] = field(default_factory=list)
    """Writes of ownership and member records; not of checkpoints."""

    checkpoint_operations: list[Count] = field(default_factory=list)
    """Reads, listings and writes of checkpoints."""

    conflicts: list[Count] = field(default_factory=list)
    """Claims that lost against another processor's claim."""

    steals: list[Count] = field(default_factory=list)
    """Steals from live owners, one entry for each cycle with any."""

    duplicates: list[Count] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    votes: list[Voted] = field(default_factory=list)
    """Of the scaler, if there is one."""
