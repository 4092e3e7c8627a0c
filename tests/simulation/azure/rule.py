"""The input and the output of an Azure processor's load-balancing rule: plain values.

A *rule* decides for one processor in one cycle. It is a pure function of what that processor read
from the store, and of a random generator.
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
    """Seconds between the store's time in the record and the processor's own clock."""


@dataclass(frozen=True, kw_only=True)
class ObservedGroup:
    """What one processor knows of the group when it decides."""

    owner_id: str
    """The processor's own owner id."""

    partition_ids: Sequence[str]
    records: Sequence[Record]
    """All records of the group, in the order of the listing."""

    expiration_s: float

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
        """The partitions of each live owner. The processor itself comes last if it owns nothing."""
        held: dict[str, list[str]] = {}
        for partition_id, owner_id in self.owner_by_partition.items():
            held.setdefault(owner_id, []).append(partition_id)
        held.setdefault(self.owner_id, [])
        return held

    @cached_property
    def mine(self) -> Sequence[str]:
        """The processor's own partitions."""
        return self.held_by_owner[self.owner_id]

    @cached_property
    def free(self) -> Sequence[str]:
        """Partitions without a live owner, in the order of their ids."""
        return [p for p in self.partition_ids if p not in self.owner_by_partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the processor should do, besides renewing its own records."""

    claims: tuple[str, ...] = ()
    """Partitions to claim or steal."""

    is_balanced: bool = True
    """Whether the rule has nothing left to do. If not, a greedy processor repeats at once."""


Rule = Callable[[ObservedGroup, Random], Decision]
