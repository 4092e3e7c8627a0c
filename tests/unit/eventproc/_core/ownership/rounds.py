"""Rounds of decisions: all members decide on one snapshot, then all their actions take effect.

Time, faults and members with different views are left to the simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eventproc._core.ownership.moves import Moves
from eventproc.models import LoadBalancingStrategy
from tests.unit.eventproc._core.ownership.groups import Group, decide

COOPERATIVE = LoadBalancingStrategy.COOPERATIVE
ROUNDS_MAX = 200


@dataclass
class Rounds:
    """The records of a group, which member serves each partition, and which ones are draining."""

    group: Group
    strategy_by_member: Mapping[str, LoadBalancingStrategy]
    """Of members and leaving owners; one that is missing is foreign and keeps its partitions."""

    drain_rounds: int = 0
    """The number of rounds that a member takes to drain a partition before it hands it over."""

    count: int = 0
    moved: list[str] = field(default_factory=list)
    """Each partition that a member began to serve, once for each time."""

    steal_count: int = 0
    _served_by: dict[str, str] = field(default_factory=dict)
    _drained_for: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """At first each owner serves its partitions."""
        self._served_by = dict(self.group.owner_by_partition)

    def run(self) -> "Rounds":
        """Step until nothing changes any more."""
        while self.step():
            assert self.count <= ROUNDS_MAX, f"not stable: {self.group.counts()}"
        return self

    def step(self) -> bool:
        """Let every member decide and act once; return whether that changed anything."""
        before = (dict(self.group.owner_by_partition), dict(self._served_by))
        before_drain = dict(self._drained_for)
        decisions = {member: self._decide(member) for member in sorted(self.strategy_by_member)}
        record = dict(self.group.owner_by_partition)
        written: set[str] = set()

        def write(partition_id: str, owner_id: str | None) -> None:
            assert partition_id not in written, "two members write one record"
            written.add(partition_id)
            record.pop(partition_id, None)
            if owner_id is not None:
                record[partition_id] = owner_id

        for member, moves in decisions.items():
            self._claim(member, moves, write)
            self._hand_over(member, moves, write)
        self.group = self.group.with_owners(record)
        has_changed = (record, self._served_by, self._drained_for) != (*before, before_drain)
        self.count += has_changed
        return has_changed

    def _decide(self, member: str) -> Moves:
        cooperative = frozenset(m for m, s in self.strategy_by_member.items() if s.lets_go)
        view = self.group.view(
            member,
            cooperative=cooperative,
            present=frozenset(self.strategy_by_member),
            held=frozenset(p for p, owner in self._served_by.items() if owner == member),
        )
        return decide(view, self.strategy_by_member[member])

    def _claim(self, member: str, moves: Moves, write) -> None:
        for partition_id in [claim.partition_id for claim in moves.claims]:
            write(partition_id, member)
            self._serve(member, partition_id)
        if moves.steal is not None:
            self.steal_count += 1
            write(moves.steal.partition_id, member)
            self._serve(member, moves.steal.partition_id)

    def _serve(self, member: str, partition_id: str) -> None:
        self._served_by[partition_id] = member
        self._drained_for.pop(partition_id, None)
        self.moved.append(partition_id)

    def _hand_over(self, member: str, moves: Moves, write) -> None:
        """Drain the partitions to hand over; a leaving owner releases the rest."""
        for partition_id, target in moves.hand_overs.items():
            if self._drained_for.get(partition_id, 0) < self.drain_rounds:
                self._drained_for[partition_id] = self._drained_for.get(partition_id, 0) + 1
                continue
            self._drained_for.pop(partition_id, None)
            write(partition_id, target)
            if self._served_by.get(partition_id) == member:
                del self._served_by[partition_id]
