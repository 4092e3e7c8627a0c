"""Sees every answer of the store and every handled event, and writes the history.

It is called in the same step of the loop in which the store acted, so what it knows of the
records is what the store has at every moment.
"""

from collections.abc import Sequence
from datetime import datetime

from eventproc.models import ClaimResult, ReceivedEvent, WriteOutcome
from eventproc.simulation.history import (
    Change,
    Count,
    Happening,
    History,
    Listing,
    Membership,
    Service,
    Wait,
)


class Observer:
    """Watches one world."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._owner_by_partition: dict[str, str | None] = {}
        self._up: set[str] = set()
        self._owner_by_etag: dict[str, str | None] = {}
        self._handled_by_partition: dict[str, int] = {}
        self.changed_at_s = 0.0
        """When a partition last came to another owner."""

        self.is_watching = True
        """False when the world is over: what happens then is no part of the history."""

    def happened(self, now_s: float, name: str) -> None:
        """An event of the script begins."""
        self.history.happenings.append(Happening(at_s=now_s, name=name))

    def expects(self, now_s: float, members: frozenset[str], partition_ids: Sequence[str]) -> None:
        """From now on these shall share these partitions."""
        self.history.memberships.append(
            Membership(at_s=now_s, members=members, partition_ids=tuple(partition_ids))
        )

    def served(self, now_s: float, owner_id: str, *, is_up: bool) -> None:
        """A process began to run, or it is gone."""
        (self._up.add if is_up else self._up.discard)(owner_id)
        if self.is_watching:
            self.history.services.append(Service(at_s=now_s, owner_id=owner_id, is_up=is_up))

    def asked_for_checkpoints(self, now_s: float) -> None:
        """A checkpoint was read or written, or all of them were listed."""
        if self.is_watching:
            self.history.checkpoint_operations.append(Count(at_s=now_s, count=1))

    def listed(self, now_s: float, owner_id: str, *, is_look: bool) -> None:
        """A listing was asked for."""
        if self.is_watching:
            self.history.listings.append(Listing(at_s=now_s, owner_id=owner_id, is_look=is_look))

    def wrote(self, now_s: float, count: int) -> None:
        """So many conditional writes of ownership or presence were made."""
        if self.is_watching:
            self.history.writes.append(Count(at_s=now_s, count=count))

    def claimed(self, now_s: float, writer: str, results: Sequence[ClaimResult]) -> None:
        """The store carried out these claims, all of one request."""
        if not self.is_watching:
            return
        self.wrote(now_s, len(results))
        steal_count = conflict_count = 0
        for result in results:
            claim = result.claim
            if result.outcome is not WriteOutcome.WON or result.ownership is None:
                # Who was robbed learns it by a renewal that fails; that is no collision.
                conflict_count += self._owner_by_etag.get(claim.expected_etag or "") != writer
                continue
            self._owner_by_etag[result.ownership.etag] = claim.owner_id
            owner_id = self._owner_by_partition.get(claim.partition_id)
            self._owner_by_partition[claim.partition_id] = claim.owner_id
            if claim.owner_id == owner_id:
                continue
            self.changed_at_s = now_s
            self.history.changes.append(
                Change(at_s=now_s, partition_id=claim.partition_id, owner_id=claim.owner_id)
            )
            is_other = owner_id in self._up and owner_id != writer
            steal_count += is_other and claim.owner_id == writer
        if conflict_count:
            self.history.conflicts.append(Count(at_s=now_s, count=conflict_count))
        if steal_count:
            self.history.steals.append(Count(at_s=now_s, count=steal_count))

    def handled(self, now: datetime, now_s: float, partition_id: str, event: ReceivedEvent) -> None:
        """A handler is through with an event."""
        if not self.is_watching:
            return
        last = self._handled_by_partition.get(partition_id, -1)
        if event.sequence_number <= last:
            self.history.duplicates.append(Count(at_s=now_s, count=1))
            return
        self._handled_by_partition[partition_id] = event.sequence_number
        waited_s = (now - event.enqueued_time).total_seconds()
        self.history.waits.append(Wait(at_s=now_s, seconds=waited_s))

    def ended(
        self, now: datetime, now_s: float, partition_id: str, events: Sequence[ReceivedEvent]
    ) -> None:
        """The world is over; these are all events of a partition, handled or not."""
        last = self._handled_by_partition.get(partition_id, -1)
        for event in events:
            if event.sequence_number > last:
                waited_s = (now - event.enqueued_time).total_seconds()
                self.history.waits.append(Wait(at_s=now_s, seconds=waited_s))
                return
