"""What a foreign processor's rule is told, and what it answers: plain values.

A *rule* decides for one processor in one of its cycles. It is a function of what that processor
sees, and of the chance that it is given; it never asks the world anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One ownership record as a listing showed it."""

    partition_id: str
    owner_id: str | None
    """``None``: released."""

    age_s: float
    """By the reader's own clock, against the time that the store wrote into the record."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one processor has before it when it decides."""

    owner_id: str
    """Its own name."""

    partition_ids: Sequence[str]
    records: Sequence[Record]
    """All there are, in the order of the listing."""

    expiration_s: float
    listed: Sequence[str] = ()
    """Who is there, by somebody else's list: an orchestrator's, or a topic of heartbeats. Empty
    for a rule that knows the others by their records alone."""

    @cached_property
    def owner_by_partition(self) -> Mapping[str, str]:
        """The owner of each partition whose record is not expired, in the listing's order."""
        return {
            record.partition_id: record.owner_id
            for record in self.records
            if record.owner_id is not None and record.age_s <= self.expiration_s
        }

    @cached_property
    def held_by_owner(self) -> Mapping[str, list[str]]:
        """What each live owner has; the reader is among them, last where it has nothing."""
        held: dict[str, list[str]] = {}
        for partition_id, owner_id in self.owner_by_partition.items():
            held.setdefault(owner_id, []).append(partition_id)
        held.setdefault(self.owner_id, [])
        return held

    @cached_property
    def mine(self) -> Sequence[str]:
        """What the reader has."""
        return self.held_by_owner[self.owner_id]

    @cached_property
    def free(self) -> Sequence[str]:
        """Partitions without a live owner, in the order of their ids."""
        return [p for p in self.partition_ids if p not in self.owner_by_partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the processor shall do, besides renewing what it has."""

    claims: tuple[str, ...] = ()
    """Partitions to write its name into, whoever has them now."""

    releases: tuple[str, ...] = ()
    """Partitions of its own to let go of."""

    is_balanced: bool = True
    """Whether it sees nothing to do: a processor that repeats at once rests then."""


Rule = Callable[[Seen, Random], Answer]
