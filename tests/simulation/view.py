"""Queries of a world's present state."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from checkpointstores.memory import MemoryAccount
from eventproc import EventProcessorConfig
from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.published_plan import PLAN_RECORD, plan_in
from eventproc._simulation.observer import BEGIN, Fleet
from eventproc.models import MemberStatus, PartitionOwnership
from eventproc.testing._processes import Wire
from tests.simulation.handlers import Behaviour
from tests.simulation.invariants import Invariants
from tests.simulation.nodes import CheckedNode
from tests.simulation.placements import drawn_facts, planned_owners

FOREIGN_PATIENCE_INTERVALS: Final = 12
"""Intervals for which a foreign member may stay idle before it claims its share."""


class GroupView(Fleet):
    """The present state of a hub, a store and processes."""

    seed: int | str
    config: EventProcessorConfig
    behaviour: Behaviour
    nodes: list[CheckedNode]
    wire: Wire
    account: MemoryAccount
    invariants: Invariants
    store_rate: float
    """The speed of the store's clock."""

    calm_since_s: float = 0.0
    """Since when there are no faults and no processor is on standby."""

    @property
    def now_s(self) -> float:
        """Virtual seconds since the beginning, also inside a process."""
        return self.wire.loop.now_s

    def store_now(self) -> datetime:
        """The store's clock."""
        return BEGIN + timedelta(seconds=self.wire.loop.now_s * self.store_rate)

    def records(self):
        """The store's present records, read without a call."""
        return self.account.records(self.group)

    def live_records(self) -> dict[str, PartitionOwnership]:
        """The records that name an owner and are not expired."""
        return {
            ownership.partition_id: ownership
            for ownership in self.records().ownership_by_partition.values()
            if self.is_live(ownership)
        }

    def is_live(self, ownership: PartitionOwnership) -> bool:
        """Whether a record names an owner, and is not expired."""
        oldest = self.store_now() - self.config.ownership_expiration
        return ownership.owner_id is not None and ownership.last_modified >= oldest

    def owner_by_partition(self) -> dict[str, str | None]:
        """Return the live owner of each partition."""
        return {p: record.owner_id for p, record in self.live_records().items()}

    @property
    def there(self) -> list[CheckedNode]:
        """The nodes that should own a share."""
        return [node for node in self.nodes if node.is_there]

    def node(self, owner_id: str) -> CheckedNode:
        """Return the newest node with this owner id that did not end by itself."""
        return next(n for n in reversed(self.nodes) if n.owner_id == owner_id and not n.is_over)

    def owned_counts(self) -> dict[str, int]:
        """Return how many partitions each present node owns by the store's records."""
        owners = list(self.owner_by_partition().values())
        return {node.owner_id: owners.count(node.owner_id) for node in self.there}

    def facts_of(self, owner_id: str) -> MemberFacts:
        """Return what a placement may know of a processor that starts.

        Its ordinal is its former one, or the lowest that no other present processor has.
        """
        used = {n.facts.ordinal for n in self.nodes if n.owner_id != owner_id and not n.is_gone}
        free = min(set(range(len(used) + 1)) - used)
        former = [node.facts.ordinal for node in self.nodes if node.owner_id == owner_id]
        ordinal = former[-1] if former and former[-1] not in used else free
        return drawn_facts(self.seed, owner_id, self.config.placement, ordinal)

    def config_of(self, facts: MemberFacts, deployment_id: str) -> EventProcessorConfig:
        """Return the configuration of a processor; without standbys, no deployment is named."""
        return replace(
            self.config,
            weight=facts.weight,
            capacity=facts.capacity,
            ordinal=facts.ordinal if self.config.placement.uses_ordinals else None,
            deployment_id=deployment_id if self.config.placement.admits_standby else "",
        )

    def planned(
        self, owners: Mapping[str, str | None], without: Collection[str] = ()
    ) -> dict[str, str]:
        """Return the owner that each partition should have among the present nodes."""
        members = {n.owner_id: n.facts for n in self.there if n.owner_id not in without}
        return planned_owners(self.config.placement, self.hub.partition_ids(), owners, members)

    def published(self) -> dict[str, str]:
        """Return the published plan, if the group follows one that is for its present members."""
        record = self.records().record_by_name.get(PLAN_RECORD)
        published = None if record is None else plan_in(record.content)
        if published is None or not published.covers(
            self.hub.partition_ids(), [node.owner_id for node in self.there]
        ):
            return {}
        return {p: owner_id for p, owner_id in published.owner_by_resource.items() if owner_id}

    @property
    def is_shared_as_planned(self) -> bool:
        """Whether each partition has its planned owner by the store's records.

        A partition that no member has room for may be owned by any present node, or by none.
        """
        owners = self.owner_by_partition()
        planned = self.published() or self.planned(owners)
        is_planned = all(owners.get(p) == owner_id for p, owner_id in planned.items())
        return is_planned and set(owners.values()) <= {node.owner_id for node in self.there}

    @property
    def is_balanced(self) -> bool:
        """Whether every partition is owned and served by nodes that are there, by ours evenly.

        With another placement than ``Even``: whether the owners are those that it plans.
        Foreign members follow their own rules: Azure's Python one never sees partitions that were
        added later, and stops at the floor.
        """
        if any(n.leaving.is_set() and not n.is_gone for n in self.nodes):
            return False  # A hand-over is pending.
        if self.config.placement != Even():
            served_count = sum(node.served_count for node in self.there)
            return self.is_shared_as_planned and served_count == len(self.owner_by_partition())
        counts = self.owned_counts()
        ours = [counts[node.owner_id] for node in self.there if not node.actor.is_foreign] or [0]
        partition_count = len(self.hub.partition_ids())
        return (
            max(ours) - min(ours) <= 1
            and sum(counts.values()) == partition_count
            and sum(node.served_count for node in self.there) == partition_count
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether it is balanced, foreign members are idle, and no processor is on standby."""
        patience = FOREIGN_PATIENCE_INTERVALS if self.invariants.is_mixed else 0
        still_s = patience * self.config.load_balancing_interval.total_seconds()
        since_s = max(self.invariants.moved_at_s, self.calm_since_s)
        members = self.records().member_by_owner
        there = [members[n.owner_id] for n in self.there if n.owner_id in members]
        if any(member.status is MemberStatus.STANDBY for member in there):
            self.calm_since_s = self.now_s
            return False
        return self.is_balanced and self.now_s - since_s >= still_s

    @property
    def is_all_handled(self) -> bool:
        """Whether every published event was handled, up to one on which every handler fails.

        Those of a partition without an owner count only if some member has room for it.
        """
        poison = self.behaviour.poison
        owners = self.owner_by_partition()
        planned = self.planned(owners)
        for p in self.hub.partition_ids():
            if p not in planned and p not in owners:
                continue
            counts: Mapping[int, int] = self.invariants.handled.get(p, {})
            for number in range(self.hub.partition_properties(p).last_enqueued_sequence_number + 1):
                if (p, number) in poison:
                    break
                if not counts.get(number):
                    return False
        return True

    @property
    def is_all_stored(self) -> bool:
        """Whether the checkpoints cover every event."""
        stored = self.records().checkpoint_by_partition
        for p in self.hub.partition_ids():
            newest = self.hub.partition_properties(p).last_enqueued_sequence_number
            if newest >= 0 and (p not in stored or stored[p].sequence_number != newest):
                return False
        return True
