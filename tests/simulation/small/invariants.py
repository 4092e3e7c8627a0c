"""Invariants of small worlds, which know what happens."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from eventproc import CloseReason
from eventproc.models import CheckpointUpdate, OwnershipClaim, PartitionOwnership, ReceivedEvent
from tests.simulation.actor import Actor
from tests.simulation.holding import Holding
from tests.simulation.invariants import Call, is_trusting
from tests.simulation.lanes import LaneInvariants
from tests.simulation.small.paused import PauseInvariants

BACKLOG = 6
"""So many events in one call are a backlog."""

HURRIED_FRACTION = 0.3
"""A lease is renewed at a third of its life, which begins when its last write was sent; clocks
differ by some percent."""


class Start:
    """Where a pump began: at its first checkpoint, which repeats the position that it adopted."""

    def __init__(self, actor: Actor, holding: Holding | None, update: CheckpointUpdate) -> None:
        self.actor = actor
        self.holding = holding
        self.writer = update.writer
        self.delivered: set[int] = set()
        """The events that its calls got."""

        self._position = update.sequence_number
        self._completed = update.completed

    def awaits(self, counts: Mapping[int, int]) -> bool:
        """Whether an event that was handled before will be delivered again."""
        return any(
            count and number > self._position and number not in self.delivered
            for number, count in counts.items()
            if not any(found.first <= number <= found.last for found in self._completed)
        )


@dataclass
class SmallInvariants(PauseInvariants):
    """Invariants that hold where it is known what happens."""

    restart_count: int = 0
    """How often an owner ended its pump and made another, though it owned the partition; but not if
    it drained the partition for a member that left before it was given."""

    stalled_count: int = 0
    """How often a partition was given up because it had completed nothing for too long."""

    moved_to: dict[str, int] = field(default_factory=dict)
    """For each partition whose checkpoint an operator moved, the position, until it is adopted."""

    taken: list[tuple[Actor, str]] = field(default_factory=list)
    """Each record that one process wrote over that of another process with the same owner id."""

    hurried: list[str] = field(default_factory=list)
    """Each record for which its owner sent a write long before it was due."""

    write_count: int = 0
    """How often an ownership record was written."""

    _sent_at_s: dict[tuple[Actor, str], float] = field(default_factory=dict)
    """When each processor sent its newest write of each partition's record."""

    _written: dict[str, tuple[Actor, float]] = field(default_factory=dict)
    """For each partition, the writer of its record, and when that write was sent."""

    _starts: dict[str, Start] = field(default_factory=dict)
    """Where the newest pump of each partition began."""

    _awaited: list[Call] = field(default_factory=list)
    """Calls that have to end before nothing is delivered again: those that got events which were
    handled before, or by another processor, those which were slow, and those with a backlog, which
    may take longer than ``shutdown_timeout``."""

    _got: dict[Call, dict[int, int]] = field(default_factory=dict)
    """For each call under way, its events, and how often each had been handled before."""

    _cut_off: dict[tuple[Actor, str], set[int]] = field(default_factory=dict)
    """For each pump, the events of calls that ended without having handled them. It delivers them
    again, or it ends, and the next one begins."""

    _edited_at_s: dict[str, float] = field(default_factory=dict)
    """For each partition whose record an operator edited, and whose owner perhaps has not read that
    yet, when the record last got another owner, or when its reads last began to succeed again."""

    _moved: set[str] = field(default_factory=set)

    _drained: set[tuple[Actor, str]] = field(default_factory=set)
    """Partitions whose newest pump ended, with the processor of it, to be handed over."""

    def owned(
        self,
        actor: Actor,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
        *,
        was_live: bool,
    ) -> None:
        """An owner whose record expired does not trust its lease any more."""
        holding = self._holding.get(after.partition_id)
        is_other = holding is not None and holding.actor is not actor
        if holding is not None and is_other and holding.actor.name == actor.name:
            self.taken.append((actor, after.partition_id))
        self._note_write(actor, after.partition_id)
        is_moved = before is not None and before.owner_id != after.owner_id
        if is_moved and after.partition_id in self._edited_at_s:
            self._edited_at_s[after.partition_id] = self.now_s()
        if not was_live:
            self.check_taken_over(actor, after)
        super().owned(actor, before, after, was_live=was_live)

    def asked(
        self,
        actor: Actor,
        claims: Collection[OwnershipClaim],
        stored: Mapping[str, PartitionOwnership],
    ) -> None:
        """Note when a write was sent: an owner counts its lease from then, however late it is."""
        super().asked(actor, claims, stored)
        for claim in claims:
            self._sent_at_s[actor, claim.partition_id] = self.now_s()

    def _note_write(self, actor: Actor, partition_id: str) -> None:
        self.write_count += 1
        sent_s = self._sent_at_s.get((actor, partition_id), self.now_s())
        writer, before_s = self._written.get(partition_id, (actor, float("-inf")))
        self._written[partition_id] = actor, sent_s
        between_s = sent_s - before_s
        if partition_id in actor.unanswered:  # It has to write again to know.
            actor.unanswered.remove(partition_id)
        elif writer is actor and between_s < HURRIED_FRACTION * self.expiration.total_seconds():
            self.hurried.append(f"{actor.name} wrote {partition_id} again after {between_s} s")

    def begun(self, call: Call, events: Sequence[ReceivedEvent]) -> None:
        """Note what a pump delivers."""
        super().begun(call, events)
        self._note_delivery(call, events)

    def dead_lettered(self, actor: Actor, partition_id: str, event: ReceivedEvent) -> None:
        """An event that was given up is not delivered again."""
        super().dead_lettered(actor, partition_id, event)
        self._cut_off.get((actor, partition_id), set()).discard(event.sequence_number)
        start = self._starts.get(partition_id)
        if start is not None and start.actor is actor:
            start.delivered.add(event.sequence_number)

    def _note_delivery(self, call: Call, events: Sequence[ReceivedEvent]) -> None:
        self.check_paused(call)
        partition_id = call.context.partition_id
        numbers = [event.sequence_number for event in events]
        handled: Mapping[int, int] = self.handled.get(partition_id, {})
        self._got[call] = {number: handled.get(number, 0) for number in numbers}
        self._cut_off.get((call.actor, partition_id), set()).difference_update(numbers)
        is_again = self._others(partition_id, call.actor) or any(map(handled.get, numbers))
        if is_again or len(numbers) > BACKLOG:
            self._awaited.append(call)
        start = self._starts.get(partition_id)
        if start is not None and start.actor is call.actor:
            start.delivered.update(numbers)

    def closed(self, actor: Actor, partition_id: str, reason: CloseReason) -> None:
        """A handler was closed. With this reason the partition is given away, if the plan is still
        the same; a pump is made again if not."""
        self._drained.discard((actor, partition_id))
        self.stalled_count += reason is CloseReason.STALLED
        if reason is CloseReason.HANDED_OVER:
            self._drained.add((actor, partition_id))

    def checkpointed(self, actor: Actor, update: CheckpointUpdate) -> None:
        """The first checkpoint after an operator moved the position repeats it.

        Unless another program writes before that, as it may for a paused partition: its checkpoint
        does not say any more that the operator moved it.
        """
        super().checkpointed(actor, update)
        to = self.moved_to.pop(update.partition_id, None)
        if actor.process is None:
            return
        self._begin(actor, update)
        if to is not None and update.sequence_number != to:
            self.report(
                "moved",
                f"{actor.name} wrote {update.sequence_number} over {update.partition_id}, which "
                f"an operator moved to {to}",
            )

    def _begin(self, actor: Actor, update: CheckpointUpdate) -> None:
        """Note which pump wrote a checkpoint, and count the pumps that one owner needs."""
        start = self._starts.get(update.partition_id)
        holding = self._holding.get(update.partition_id)
        if start is not None and start.writer == update.writer:
            return
        is_same = start is not None and start.actor is actor and start.holding is holding
        is_drained = (actor, update.partition_id) in self._drained
        is_withdrawn = is_drained and self.has_left(self.handoff_timeout.total_seconds())
        self.restart_count += is_same and holding is not None and not is_withdrawn
        self._cut_off.pop((actor, update.partition_id), None)
        self._edited_at_s.pop(update.partition_id, None)
        self._starts[update.partition_id] = Start(actor, holding, update)

    def edited(self, partition_id: str) -> None:
        super().edited(partition_id)
        self._edited_at_s[partition_id] = self.now_s()

    def _others(self, partition_id: str, actor: Actor) -> bool:
        """Whether another processor, which lost the partition, still handles events of it."""
        calls = self._calls.get(partition_id, ())
        return any(call.actor is not actor and not call.actor.is_killed for call in calls)

    def healed(self) -> None:
        """Faults ended: calls under way may take as long as before, and be cut off if it leaves."""
        self._awaited.extend(call for calls in self._calls.values() for call in calls)
        self._edited_at_s = dict.fromkeys(self._edited_at_s, self.now_s())

    def ended(self, call: Call) -> None:
        """A call ended, and with it what it got again."""
        super().ended(call)
        partition_id, got = call.context.partition_id, self._got.pop(call)
        counts = self._count(partition_id)
        left = {number for number, before in got.items() if counts.get(number, 0) == before}
        self._cut_off.setdefault((call.actor, partition_id), set()).update(left)
        self._awaited = [other for other in self._awaited if other is not call]

    @property
    def is_caught_up(self) -> bool:
        """Whether no event that was handled before is being delivered again, or will be."""
        is_under_way = any(not call.actor.is_killed for call in self._awaited)
        return not is_under_way and all(
            self._has_caught_up(partition_id, start) for partition_id, start in self._starts.items()
        )

    def _has_caught_up(self, partition_id: str, start: Start) -> bool:
        holding = self._holding.get(partition_id)
        owner = start.actor if holding is None else holding.actor
        if owner.is_foreign or self.pauses.of(partition_id) is not None:
            return True
        edited_s = self.now_s() - self._edited_at_s.get(partition_id, float("-inf"))
        if edited_s < self.expiration.total_seconds():
            return False
        is_alone = owner is start.actor and not self._others(partition_id, owner)
        is_cut_off = bool(self._cut_off.get((owner, partition_id)))
        return is_alone and not is_cut_off and not start.awaits(self._count(partition_id))

    def moving(self, partition_id: str, to: int) -> None:
        """An operator is about to move a position: what lies below it need not be handled."""
        self.reset(partition_id)
        self._moved.add(partition_id)
        counts = self._count(partition_id)
        for number in range(to + 1):
            counts[number] = max(1, counts[number])

    def _check_state(self, partition_id: str, number: int, state: bytes) -> None:
        if partition_id not in self._moved:  # A move begins a new state.
            super()._check_state(partition_id, number, state)

    def is_stolen_from(self, victim: Actor, since_s: float, *, until_s: float = math.inf) -> bool:
        """Whether another processor stole a partition from this one in that time."""
        stolen = self._stolen_at_s.items()
        return any(actor is victim and since_s <= at_s < until_s for (_, actor), at_s in stolen)

    def handling_of_others(self, partition_id: str) -> list[str]:
        """Return the calls under way whose processor trusts a lease that names another owner."""
        return [
            f"{call.actor.name} handles {partition_id}"
            for call in self._calls.get(partition_id, ())
            if is_trusting(call) and not self.is_held(partition_id, call.actor.name)
        ]


@dataclass
class SmallLaneInvariants(SmallInvariants, LaneInvariants):
    """The same with key lanes; an event in a completed range is not delivered again, except by an
    owner from which the partition was stolen, until it notices that."""

    completed: dict[str, set[int]] = field(default_factory=dict)
    """The completed ranges that are stored, by partition."""

    def checkpointed(self, actor: Actor, update: CheckpointUpdate) -> None:
        super().checkpointed(actor, update)
        self.completed[update.partition_id] = {
            number for found in update.completed for number in range(found.first, found.last + 1)
        }

    def begun(self, call: Call, events: Sequence[ReceivedEvent]) -> None:
        LaneInvariants.begun(self, call, events)
        self._note_delivery(call, events)
        again = self.completed.get(call.context.partition_id, set()).intersection(
            event.sequence_number for event in events
        )
        partition_id, actor = call.context.partition_id, call.actor
        is_owner = self.is_held(partition_id, actor.name)
        is_stolen = not is_owner and (partition_id, actor) in self._stolen_at_s
        if again and not is_stolen:
            self.report("again", f"{call.actor.name} gets {again}, stored as completed")

    def reset(self, partition_id: str) -> None:
        super().reset(partition_id)
        self.completed.pop(partition_id, None)
