"""What must hold in every world, checked at every write and at every call of a handler.

The names in a violation are those of the tests' report:
*overlap*, *fence*, *back*, *former*, *gap*, *state*, *order*, *steals*, *given*, *budget*, *left*.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta

from eventproc.handler import PartitionContext
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    OwnershipClaim,
    PartitionOwnership,
    ReceivedEvent,
)
from eventproc.testing.processes import Process

OPERATOR = "operator"
"""Whoever writes a checkpoint by hand."""


class Violation(AssertionError):  # noqa: N818 - that is what it is
    """A promise was broken."""


@dataclass
class Call:
    """One call of a handler, while it is under way."""

    process: Process
    owner_id: str
    context: PartitionContext


@dataclass
class Invariants:
    """Sees everything that happens, and raises nothing: violations are collected."""

    expiration: timedelta
    handled: dict[str, defaultdict[int, int]] = field(default_factory=dict)
    """For each partition, how often each sequence number was handled."""

    violations: list[str] = field(default_factory=list)
    history: list[tuple[float, str, str]] = field(default_factory=list)
    moved_at_s: float = 0.0
    """When a partition last changed hands, or was released."""

    _calls: dict[str, list[Call]] = field(default_factory=dict)
    _stolen_at_s: dict[tuple[str, str], float] = field(default_factory=dict)
    _writers: dict[str, list[str]] = field(default_factory=dict)

    def note(self, now_s: float, what: str, who: str) -> None:
        """Add a line to the history."""
        self.history.append((round(now_s, 9), what, who))

    def report(self, now_s: float, kind: str, what: str) -> None:
        """Add a violation."""
        self.violations.append(f"{now_s:.3f} {kind}: {what}")

    # Ownership.

    def asked(
        self,
        now_s: float,
        owner_id: str,
        claims: list[OwnershipClaim],
        live: dict[str, PartitionOwnership],
    ) -> None:
        """A processor asks for these writes at once: at most one of them takes from the living.

        A renewal of what was taken from it meanwhile is none: it names an etag of the past.
        """
        steals = [
            claim.partition_id
            for claim in claims
            if claim.owner_id == owner_id
            and (record := live.get(claim.partition_id)) is not None
            and record.owner_id != owner_id
            and record.etag == claim.expected_etag
        ]
        if len(steals) > 1:
            self.report(now_s, "steals", f"{owner_id} asked for {steals} at once")

    def owned(
        self,
        now_s: float,
        writer: str,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
    ) -> None:
        """An ownership record was written by *writer*."""
        partition_id = after.partition_id
        former = None if before is None else before.owner_id
        if former == after.owner_id:
            return
        self.moved_at_s = now_s
        self.note(now_s, f"{partition_id}: {former} -> {after.owner_id}", writer)
        if former is None or before is None:
            return
        if former == writer:
            self._gave(now_s, writer, partition_id)
        elif after.last_modified - before.last_modified <= self.expiration:
            self._stolen_at_s[partition_id, former] = now_s

    def _gave(self, now_s: float, owner_id: str, partition_id: str) -> None:
        """Who gives a partition away has nothing under way in it."""
        calls = self._calls.get(partition_id, ())
        if any(call.owner_id == owner_id and not call.process.is_killed for call in calls):
            self.report(now_s, "given", f"{owner_id} gave {partition_id} away during a call")

    # Checkpoints.

    def checkpointed(
        self, now_s: float, before: Checkpoint | None, update: CheckpointUpdate
    ) -> None:
        """A checkpoint was stored."""
        partition_id, number = update.partition_id, update.sequence_number
        self.note(now_s, f"{partition_id} at {number}", update.writer)
        if before is not None and number < (before.sequence_number or 0):
            self.report(now_s, "back", f"{partition_id} from {before.sequence_number} to {number}")
        writers = self._writers.setdefault(partition_id, [])
        if update.writer != OPERATOR and (not writers or writers[-1] != update.writer):
            if update.writer in writers:
                self.report(
                    now_s, "former", f"{update.writer} wrote {partition_id} after {writers[-1]}"
                )
            writers.append(update.writer)
        missing = [n for n in range(number + 1) if not self._count(partition_id)[n]]
        if missing:
            self.report(now_s, "gap", f"{partition_id} at {number} without {missing[:5]}")
        if update.state is not None and int(update.state or b"0") != number + 1:
            self.report(now_s, "state", f"{partition_id} at {number} has counted {update.state!r}")

    # Handlers.

    def begun(self, now_s: float, call: Call, events: list[ReceivedEvent]) -> None:
        """A handler was called."""
        context = call.context
        partition_id = context.partition_id
        self.note(now_s, f"{partition_id} gets {events[0].sequence_number}", call.owner_id)
        if not context.is_owned:
            self.report(now_s, "fence", f"{call.owner_id} got {partition_id} without a lease")
        expected = -1 if context.sequence_number is None else context.sequence_number
        for event in events:
            expected += 1
            if event.sequence_number != expected:
                self.report(now_s, "order", f"{partition_id}: {expected} expected, not {event}")
                break
        calls = self._calls.setdefault(partition_id, [])
        for other in calls:
            self._check_overlap(now_s, call, other)
        calls.append(call)

    def _check_overlap(self, now_s: float, call: Call, other: Call) -> None:
        partition_id = call.context.partition_id
        if other.process.is_killed or not other.context.is_owned:
            return
        if other.owner_id == call.owner_id:
            return  # Who takes the name of one that is only paused asks for this.
        # Who was robbed learns it late; until then both act, which no protocol can avoid.
        robbed_at_s = max(
            self._stolen_at_s.get((partition_id, owner_id), float("-inf"))
            for owner_id in (call.owner_id, other.owner_id)
        )
        if now_s - robbed_at_s > self.expiration.total_seconds():
            self.report(
                now_s,
                "overlap",
                f"{call.owner_id} and {other.owner_id} both trust their lease of {partition_id}",
            )

    def done(self, partition_id: str, event: ReceivedEvent) -> None:
        """A handler is through with an event."""
        self._count(partition_id)[event.sequence_number] += 1

    def ended(self, call: Call) -> None:
        """A call of a handler is over, whatever came of it."""
        self._calls[call.context.partition_id].remove(call)

    def _count(self, partition_id: str) -> defaultdict[int, int]:
        return self.handled.setdefault(partition_id, defaultdict(int))

    @property
    def stolen_count(self) -> int:
        """From how many owners of a partition it was taken while they lived."""
        return len(self._stolen_at_s)

    @property
    def duplicate_count(self) -> int:
        """How often an event was handled again."""
        return sum(n - 1 for counts in self.handled.values() for n in counts.values() if n)
