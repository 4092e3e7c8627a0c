"""The hub and the clock of a simulation, and the record of what happens on them.

The observer is called in the same step of the loop in which the store acted, so its copy of the
ownership records equals the store's at every moment.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc._core.placement.placement import MemberFacts
from eventproc._simulation.history import (
    Change,
    Count,
    History,
    Listing,
    Membership,
    ScriptEvent,
    Service,
    Voted,
    Wait,
)
from eventproc.models import ClaimResult, ConsumerGroup, ReceivedEvent, WriteOutcome
from eventproc.ports import EventSource
from eventproc.sources.memory import MemoryEventSource, MemoryHub

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Fleet:
    """The hub and the clock, on virtual time, that processors share.

    ``World`` runs scripts on it. The project's own tests add faults and invariants to it.
    """

    def __init__(self, partition_count: int) -> None:
        self.hub = MemoryHub(partition_count, clock=self.now)
        self.group = ConsumerGroup(
            fully_qualified_namespace=self.hub.namespace, eventhub_name=self.hub.name
        )

    @property
    def now_s(self) -> float:
        """Seconds since the beginning."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """The hub's clock."""
        return BEGIN + timedelta(seconds=self.now_s)

    def make_source(self) -> EventSource:
        """Make the source of a processor."""
        return MemoryEventSource(self.hub)


class Observer:
    """Records what happens in one simulation."""

    def __init__(self, history: History, fleet: Fleet) -> None:
        self.history = history
        """May be replaced, so that what follows is recorded elsewhere."""

        self._fleet = fleet
        self._owner_by_partition: dict[str, str | None] = {}
        self._up: set[str] = set()
        self._owner_by_etag: dict[str, str | None] = {}
        self._handled_by_partition: dict[str, int] = {}
        self.changed_at_s = 0.0
        """When a partition last changed its owner."""

    def happened(self, name: str) -> None:
        """Record that an event of the script starts."""
        self.history.script_events.append(ScriptEvent(at_s=self._fleet.now_s, name=name))

    def voted(self, vote: Voted) -> None:
        """Record a vote of the scaler."""
        self.history.votes.append(vote)

    def expects(self, members: Mapping[str, MemberFacts], partition_ids: Sequence[str]) -> None:
        """Record which processors should share which partitions from now on."""
        self.history.memberships.append(
            Membership(at_s=self._fleet.now_s, members=members, partition_ids=tuple(partition_ids))
        )

    def served(self, owner_id: str, *, is_up: bool) -> None:
        """Record that a process started to run, or ended."""
        (self._up.add if is_up else self._up.discard)(owner_id)
        self.history.services.append(
            Service(at_s=self._fleet.now_s, owner_id=owner_id, is_up=is_up)
        )

    def asked_for_checkpoints(self) -> None:
        """Record a read, a write or a listing of checkpoints."""
        self.history.checkpoint_operations.append(Count(at_s=self._fleet.now_s, count=1))

    def listed(self, owner_id: str, *, is_ownership: bool) -> None:
        """Record a listing of ownership or member records."""
        self.history.listings.append(
            Listing(at_s=self._fleet.now_s, owner_id=owner_id, is_ownership=is_ownership)
        )

    def wrote(self, count: int) -> None:
        """Record *count* conditional writes of ownership or member records."""
        self.history.writes.append(Count(at_s=self._fleet.now_s, count=count))

    def claimed(self, writer: str, results: Sequence[ClaimResult]) -> None:
        """Record the results of one ``claim_ownership`` call."""
        self.wrote(len(results))
        steal_count = conflict_count = 0
        for result in results:
            claim = result.claim
            if result.outcome is not WriteOutcome.WON or result.ownership is None:
                # A renewal that fails because the partition was stolen is not a conflict.
                conflict_count += self._owner_by_etag.get(claim.expected_etag or "") != writer
                continue
            self._owner_by_etag[result.ownership.etag] = claim.owner_id
            owner_id = self._owner_by_partition.get(claim.partition_id)
            self._owner_by_partition[claim.partition_id] = claim.owner_id
            if claim.owner_id == owner_id:
                continue
            self.changed_at_s = self._fleet.now_s
            self.history.changes.append(
                Change(
                    at_s=self._fleet.now_s, partition_id=claim.partition_id, owner_id=claim.owner_id
                )
            )
            is_other = owner_id in self._up and owner_id != writer
            steal_count += is_other and claim.owner_id == writer
        if conflict_count:
            self.history.conflicts.append(Count(at_s=self._fleet.now_s, count=conflict_count))
        if steal_count:
            self.history.steals.append(Count(at_s=self._fleet.now_s, count=steal_count))

    def handled(self, partition_id: str, event: ReceivedEvent) -> None:
        """Record that a handler completed an event."""
        last = self._handled_by_partition.get(partition_id, -1)
        if event.sequence_number <= last:
            self.history.duplicates.append(Count(at_s=self._fleet.now_s, count=1))
            return
        self._handled_by_partition[partition_id] = event.sequence_number
        waited_s = (self._fleet.now() - event.enqueued_time).total_seconds()
        self.history.waits.append(Wait(at_s=self._fleet.now_s, seconds=waited_s))

    def ended(self, partition_id: str, events: Sequence[ReceivedEvent]) -> None:
        """Record, at the end, how long the oldest unhandled event of a partition has waited.

        *events* are all events of the partition, handled or not.
        """
        last = self._handled_by_partition.get(partition_id, -1)
        for event in events:
            if event.sequence_number > last:
                waited_s = (self._fleet.now() - event.enqueued_time).total_seconds()
                self.history.waits.append(Wait(at_s=self._fleet.now_s, seconds=waited_s))
                return
