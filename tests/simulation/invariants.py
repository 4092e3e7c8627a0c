"""What must hold in every world, checked at every write and at every call of a handler.

The names in a violation are those of the tests' report:

- *overlap*: two processes handle a partition while both trust their lease;
- *fence*: a handler is called, or continues, without a trusted lease;
- *twice*: two writes replaced one version of a record;
- *back*, *former*, *gap*, *state*: a checkpoint goes back, comes from a former owner, covers what
  was not handled, or carries another state than that of its events;
- *order*: the events of a partition come out of order;
- *steals*: two steals in a cycle;
- *early*: a steal from a cooperative owner that the record named for less than `handoff_timeout`;
- *pace*: two claims in a cycle, where the strategy allows one;
- *given*: a partition is handed over during a call of its handler;
- *flight*: a pump sends a checkpoint before the one that it sent last was answered;
- *budget*, *left*: a stop takes too long, or leaves something behind;
- *hang*: a call that hangs is not cut off in time;
- *deaths*: more processes die of one event than the policy allows.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from eventproc._delivery.handler import PartitionContext
from eventproc._group.pumps.stop_scope import TRUST_CHECK_MAX_S
from eventproc.models import (
    CheckpointUpdate,
    GroupRecord,
    Member,
    OwnershipClaim,
    PartitionOwnership,
    ReceivedEvent,
)
from tests.simulation.actor import Actor
from tests.simulation.holding import Holding

CLOCK_RATE_MARGIN = 0.9
"""A stealer's clock may run 5 % fast against one that runs 5 % slow."""

NOTICED_WITHIN_S = TRUST_CHECK_MAX_S * 1.1
"""Limit for cancelling a handler after a disturbance: its clock may run slow."""


class Violation(AssertionError):  # noqa: N818 - the plain name
    """An invariant was violated."""


@dataclass(eq=False, slots=True)
class Call:
    """One call of a handler, while it is under way."""

    actor: Actor
    context: PartitionContext


def is_trusting(call: Call) -> bool:
    """Whether a call goes on, and trusts its lease."""
    return not call.actor.is_killed and call.context.is_owned


@dataclass
class Invariants:
    """Checks everything that happens; collects violations instead of raising them."""

    expiration: timedelta
    handoff_timeout: timedelta
    now_s: Callable[[], float]
    is_live: Callable[[PartitionOwnership], bool]
    """Whether a record names an owner, and is not expired."""

    claims_singly: bool = False
    """Whether processors may claim or steal only one partition in a cycle."""

    is_membership_visible: bool = True
    """Whether every processor sees the member records: none was deleted, no listing is stale."""

    is_mixed: bool = False
    """Whether foreign members write checkpoints, which have no state."""

    hang_max_s: float = float("inf")
    """How many seconds a call may hang."""

    deaths_max: int = 0
    """How many processes one event may kill."""

    handled: dict[str, defaultdict[int, int]] = field(default_factory=dict)
    """For each partition, how often each sequence number was handled."""

    violations: list[str] = field(default_factory=list)
    history: list[tuple[float, str, str]] = field(default_factory=list)
    moved_at_s: float = 0.0
    """When a partition last changed its owner, or was released."""

    _dead_lettered: dict[str, set[int]] = field(default_factory=dict)
    _deaths: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    _calls: dict[str, list[Call]] = field(default_factory=dict)
    _holding: dict[str, Holding] = field(default_factory=dict)
    _given_at_s: dict[str, float] = field(default_factory=dict)  # until the new owner writes
    _stolen_at_s: dict[tuple[str, Actor], float] = field(default_factory=dict)
    _stolen_count: int = 0
    _replaced: set[str] = field(default_factory=set)
    _in_flight: Counter[str] = field(default_factory=Counter)
    _writers: dict[str, list[str]] = field(default_factory=dict)
    _covered: dict[str, int] = field(default_factory=dict)
    """For each partition, the position below which every event was handled."""

    def note(self, what: str, subject: str) -> None:
        """Add a line to the history."""
        self.history.append((round(self.now_s(), 9), what, subject))

    def report(self, kind: str, what: str) -> None:
        """Add a violation."""
        self.violations.append(f"{self.now_s():.3f} {kind}: {what}")

    # Ownership.

    def polled(self, actor: Actor) -> None:
        """An actor lists ownership: a new cycle may have begun."""
        actor.steal_count = actor.claim_count = 0

    def asked(
        self,
        actor: Actor,
        claims: Collection[OwnershipClaim],
        stored: Mapping[str, PartitionOwnership],
    ) -> None:
        """A processor requests these writes in one call: at most one of them may be a steal.

        A renewal of a partition that was stolen meanwhile is not a steal: its etag is outdated.
        """
        if actor.is_foreign:
            return
        for claim in claims:
            record = stored.get(claim.partition_id)
            etag, owner_id = (record.etag, record.owner_id) if record else (None, None)
            if claim.owner_id != actor.name or owner_id == actor.name:
                continue
            if etag != claim.expected_etag:
                continue
            self._claiming(actor)
            if record is not None and self.is_live(record):
                self._stealing(actor, claim.partition_id)

    def _claiming(self, actor: Actor) -> None:
        actor.claim_count += 1
        if self.claims_singly and actor.claim_count > 1:
            self.report("pace", f"{actor.name} asked for {actor.claim_count} in a cycle")

    def _stealing(self, actor: Actor, partition_id: str) -> None:
        actor.steal_count += 1
        if actor.steal_count > 1:
            self.report("steals", f"{actor.name} asked for {actor.steal_count} in a cycle")
        victim = self._holding.get(partition_id)
        is_strange = victim is None or not victim.actor.hands_over or not actor.hands_over
        if victim is None or is_strange or not self.is_membership_visible:
            return
        had_s = self.now_s() - victim.since_s
        if had_s < self.handoff_timeout.total_seconds() * CLOCK_RATE_MARGIN:
            self.report(
                "early",
                f"{actor.name} steals {partition_id} from {victim.actor.name} after {had_s} s",
            )

    def owned(
        self,
        actor: Actor,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
        *,
        was_live: bool,
    ) -> None:
        """*actor* wrote an ownership record; *was_live*: it replaced one with a live owner."""
        partition_id = after.partition_id
        if before is not None:
            self._replace(before.etag)
        former = None if before is None else before.owner_id
        holding = self._holding.get(partition_id)
        is_mine = after.owner_id == actor.name
        if former == after.owner_id and holding is not None and holding.actor is actor:
            return
        now_s = self.now_s()
        if former != after.owner_id:
            self.moved_at_s = now_s
            self.note(f"{partition_id}: {former} -> {after.owner_id}", actor.name)
        if former == actor.name and not is_mine:
            self._check_handed_over(actor, partition_id)
        if holding is not None and holding.actor is not actor and was_live:
            self._stolen_at_s[partition_id, holding.actor] = now_s
            self._stolen_count += former != after.owner_id
        if is_mine:
            given_at_s = self._given_at_s.pop(partition_id, now_s)
            since_s = given_at_s if former == actor.name else now_s
            self._holding[partition_id] = Holding(actor, since_s)
        else:
            self._holding.pop(partition_id, None)
            self._given_at_s[partition_id] = now_s

    def check_taken_over(self, actor: Actor, after: PartitionOwnership) -> None:
        """Check that an owner whose record expired does not trust its lease any more."""
        partition_id, holding = after.partition_id, self._holding.get(after.partition_id)
        is_taken = after.owner_id == actor.name and not actor.is_foreign
        if not is_taken or holding is None or holding.actor.name == actor.name:
            return
        for call in self._calls.get(partition_id, ()):
            if call.actor is holding.actor and is_trusting(call):
                self.report(
                    "overlap",
                    f"{actor.name} takes over {partition_id}, and {call.actor.name} "
                    "still trusts its lease",
                )

    def announced(self, actor: Actor, member: Member) -> None:
        """*actor* wrote a member record."""

    def record_read(self, actor: Actor, record: GroupRecord | None) -> None:
        """*actor* got a group record."""

    def is_held(self, partition_id: str, owner_id: str) -> bool:
        """Whether the owner itself wrote the record, and not a member that handed over too late."""
        holding = self._holding.get(partition_id)
        return holding is not None and holding.actor.name == owner_id

    def edited(self, partition_id: str) -> None:
        """An operator deleted a record, or changed its owner."""
        holding = self._holding.pop(partition_id, None)
        self._given_at_s.pop(partition_id, None)
        if holding is not None:
            self._stolen_at_s[partition_id, holding.actor] = self.now_s()

    def _replace(self, etag: str | None) -> None:
        if etag is None:
            return
        if etag in self._replaced:
            self.report("twice", f"two writes replaced {etag}")
        self._replaced.add(etag)

    def _check_handed_over(self, actor: Actor, partition_id: str) -> None:
        """Check that a processor hands over only without a call under way."""
        calls = self._calls.get(partition_id, ())
        if any(call.actor is actor for call in calls) and not actor.is_killed:
            self.report("given", f"{actor.name} handed over {partition_id} during a call")

    # Checkpoints.

    def sent(self, actor: Actor, update: CheckpointUpdate) -> None:
        """A checkpoint is sent: by each pump at most one at a time."""
        self._in_flight[update.writer] += 1
        if self._in_flight[update.writer] > 1 and not actor.is_foreign:
            self.report("flight", f"{actor.name} sends two checkpoints of {update.partition_id}")

    def answered(self, update: CheckpointUpdate) -> None:
        """A checkpoint that was sent is answered, or its sender waits for the answer no more."""
        self._in_flight[update.writer] -= 1

    def checkpointed(self, actor: Actor, update: CheckpointUpdate) -> None:
        """A checkpoint was stored."""
        partition_id, number, before = update.partition_id, update.sequence_number, update.replaces
        self.note(f"{partition_id} at {number}", update.writer)
        if before is not None:
            self._replace(before.etag)
            if number < (before.sequence_number or 0) and not update.is_reset:
                self.report("back", f"{partition_id} from {before.sequence_number} to {number}")
        if actor.process is not None and not actor.is_foreign:
            self._check_writer(actor, update)
        missing = self._find_missing(partition_id, number)
        if missing is not None:
            self.report("gap", f"{partition_id} at {number} without {missing}")
        if update.state is not None and not self.is_mixed:
            self._check_state(partition_id, number, update.state)

    def _check_state(self, partition_id: str, number: int, state: bytes) -> None:
        """Each event counts once, except those given up (which may be handled later)."""
        dead_letter_count = sum(n <= number for n in self._dead_lettered.get(partition_id, ()))
        if not number + 1 - dead_letter_count <= int(state or b"0") <= number + 1:
            self.report("state", f"{partition_id} at {number} has counted {state!r}")

    def _check_writer(self, actor: Actor, update: CheckpointUpdate) -> None:
        partition_id, writer = update.partition_id, update.writer
        # Of two processors with one owner id one ends after some polls; until then both may write.
        writers = self._writers.setdefault(partition_id, [])
        if not writers or writers[-1] != writer:
            if writer in writers and not writers[-1].startswith(f"{actor.name}/"):
                self.report("former", f"{writer} wrote {partition_id} after {writers[-1]}")
            writers.append(writer)
        holding = self._holding.get(partition_id)
        is_former = holding is not None and holding.actor.name != actor.name and holding.has_served
        if holding is not None and is_former:
            self.report("former", f"{writer} wrote {partition_id} of {holding.actor.name}")

    def reset(self, partition_id: str) -> None:
        """An operator deleted a checkpoint: former writers may write again."""
        self._writers.pop(partition_id, None)

    def _find_missing(self, partition_id: str, number: int) -> int | None:
        """Return the first event up to this one that was not handled."""
        counts = self._count(partition_id)
        covered = self._covered.get(partition_id, 0)
        while covered <= number:
            if not counts.get(covered):
                return covered
            covered += 1
            self._covered[partition_id] = covered
        return None

    # Handlers.

    def begun(self, call: Call, events: Sequence[ReceivedEvent]) -> None:
        """A handler was called."""
        context, actor = call.context, call.actor
        partition_id = context.partition_id
        self.note(f"{partition_id} gets {events[0].sequence_number}", actor.name)
        if not context.is_owned:
            self.report("fence", f"{actor.name} got {partition_id} without a lease")
        expected = -1 if context.sequence_number is None else context.sequence_number
        for event in events:
            expected += 1
            if event.sequence_number != expected:
                self.report("order", f"{partition_id}: {expected} expected, not {event}")
                break
        holding = self._holding.get(partition_id)
        if holding is not None and holding.actor is actor:
            holding.has_served = True
        elif holding is not None and holding.actor.name != actor.name:
            # After a steal the former owner may not know yet; after an expiration it must.
            stolen_at_s = self._stolen_at_s.get((partition_id, actor), float("-inf"))
            if self.now_s() - stolen_at_s > self.expiration.total_seconds():
                self.report(
                    "overlap",
                    f"{actor.name} handles {partition_id}, which {holding.actor.name} took over",
                )
        calls = self._calls.setdefault(partition_id, [])
        for other in calls:
            self._check_overlap(call, other)
        calls.append(call)

    def _check_overlap(self, call: Call, other: Call) -> None:
        partition_id = call.context.partition_id
        if other.actor.is_killed or not other.context.is_owned:
            return
        if other.actor is call.actor:
            self.report("overlap", f"{call.actor.name} has two pumps of {partition_id}")
            return
        # After a steal both may act until the former owner learns of it; no protocol avoids that.
        stolen_at_s = max(
            self._stolen_at_s.get((partition_id, actor), float("-inf"))
            for actor in (call.actor, other.actor)
        )
        if self.now_s() - stolen_at_s > self.expiration.total_seconds():
            self.report(
                "overlap",
                f"{call.actor.name} and {other.actor.name} both trust their lease of "
                f"{partition_id}",
            )

    def went_on(self, actor: Actor, context: PartitionContext) -> None:
        """A handler that reacts to cancellation continues after an await.

        If its process was paused or its clock jumped, it is cancelled at the next check of trust.
        """
        if not context.is_owned and self.now_s() - actor.disturbed_at_s > NOTICED_WITHIN_S:
            self.report("fence", f"{actor.name} goes on with {context.partition_id}")

    def done(self, partition_id: str, event: ReceivedEvent) -> None:
        """A handler completed an event."""
        self._count(partition_id)[event.sequence_number] += 1

    def dead_lettered(self, actor: Actor, partition_id: str, event: ReceivedEvent) -> None:
        """An event was given up, and its dead letter is stored."""
        self.note("dead letter", f"{actor.name}: {partition_id}/{event.sequence_number}")
        self._dead_lettered.setdefault(partition_id, set()).add(event.sequence_number)
        self.done(partition_id, event)

    def died(self, actor: Actor, place: tuple[str, int]) -> None:
        """An event is about to kill a process."""
        self.note("died", f"{actor.name}: {place}")
        self._deaths[place] += 1
        if self._deaths[place] > self.deaths_max:
            self.report(
                "deaths", f"{actor.name} is process {self._deaths[place]} that {place} kills"
            )

    def hung(self, actor: Actor, place: tuple[str, int], for_s: float) -> None:
        """A call that hung was cancelled."""
        self.note("hung", f"{actor.name}: {place}")
        if for_s > self.hang_max_s:
            self.report("hang", f"{actor.name} hung at {place} for {for_s} s")

    def ended(self, call: Call) -> None:
        """A call of a handler ended, with or without an error."""
        self._calls[call.context.partition_id].remove(call)

    def _count(self, partition_id: str) -> defaultdict[int, int]:
        return self.handled.setdefault(partition_id, defaultdict(int))

    @property
    def stolen_count(self) -> int:
        """How often a partition was stolen from a live owner."""
        return self._stolen_count

    @property
    def duplicate_count(self) -> int:
        """How often an event was handled again."""
        return sum(n - 1 for counts in self.handled.values() for n in counts.values() if n)
