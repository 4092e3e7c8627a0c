"""What must hold in every world, checked at every write and at every call of a handler.

The names in a violation are those of the tests' report:

- *overlap*: two processes act on a partition under leases that both may trust;
- *fence*: a handler is called, or goes on, without a lease that may be trusted;
- *twice*: two writes replaced one version of a record;
- *back*, *former*, *gap*, *state*: a checkpoint goes back, comes from a former owner, covers what
  was not handled, or carries another state than that of its events;
- *order*: the events of a partition come out of order;
- *steals*, *hasty*: two steals in a cycle; a steal from a cooperative owner who had time left;
- *pace*: two claims in a cycle, where the strategy allows one;
- *given*: a partition is given away during a call of its handler;
- *budget*, *left*: a stop takes too long, or leaves something behind;
- *hang*: a call that hangs is not cut off in time;
- *deaths*: more processes die of one event than the policy allows.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from eventproc.ending import TRUST_LOOK_S
from eventproc.handler import PartitionContext
from eventproc.models import (
    CheckpointUpdate,
    OwnershipClaim,
    PartitionOwnership,
    ReceivedEvent,
)
from tests.simulation.actor import Actor

CLOCK_RATE_MARGIN = 0.9
"""A stealer's clock may run 5 % fast against one that runs 5 % slow."""

NOTICED_WITHIN_S = TRUST_LOOK_S * 1.1
"""How soon after a disturbance a handler is cut: its clock may run slow."""


class Violation(AssertionError):  # noqa: N818 - that is what it is
    """A promise was broken."""


@dataclass(eq=False, slots=True)
class Call:
    """One call of a handler, while it is under way."""

    actor: Actor
    context: PartitionContext


@dataclass(slots=True)
class Holding:
    """Who holds a partition by its record, and since when it stands there."""

    actor: Actor
    since_s: float
    has_served: bool = False
    """Whether it called its handler since."""


@dataclass
class Invariants:
    """Sees everything that happens, and raises nothing: violations are collected."""

    expiration: timedelta
    handoff_timeout: timedelta
    now_s: Callable[[], float]
    is_live: Callable[[PartitionOwnership], bool]
    """Whether a record names an owner, and is not expired."""

    claims_singly: bool = False
    """Whether everybody claims or steals one partition in a cycle."""

    is_presence_whole: bool = True
    """Whether everybody can see who hands over: nobody took presence away, no listing is stale."""

    is_mixed: bool = False
    """Whether strangers write positions without the state that goes with them."""

    hang_max_s: float = float("inf")
    """For how long a call may hang."""

    deaths_max: int = 0
    """How many processes may die of one event."""

    handled: dict[str, defaultdict[int, int]] = field(default_factory=dict)
    """For each partition, how often each sequence number was handled."""

    violations: list[str] = field(default_factory=list)
    history: list[tuple[float, str, str]] = field(default_factory=list)
    moved_at_s: float = 0.0
    """When a partition last changed hands, or was released."""

    dead_etags: set[str] = field(default_factory=set)
    """The etags of records whose owner was declared dead: none of them is anybody's lease."""

    _buried: dict[str, set[int]] = field(default_factory=dict)
    _deaths: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    _calls: dict[str, list[Call]] = field(default_factory=dict)
    _holding: dict[str, Holding] = field(default_factory=dict)
    _robbed_at_s: dict[tuple[str, Actor], float] = field(default_factory=dict)
    _stolen_count: int = 0
    _replaced: set[str] = field(default_factory=set)
    _writers: dict[str, list[str]] = field(default_factory=dict)
    _covered: dict[str, int] = field(default_factory=dict)
    """For each partition, up to where everything is known to be handled."""

    def note(self, what: str, who: str) -> None:
        """Add a line to the history."""
        self.history.append((round(self.now_s(), 9), what, who))

    def report(self, kind: str, what: str) -> None:
        """Add a violation."""
        self.violations.append(f"{self.now_s():.3f} {kind}: {what}")

    # Ownership.

    def looked(self, actor: Actor) -> None:
        """An actor lists who owns what: a new cycle may have begun."""
        actor.steal_count = actor.claim_count = 0

    def asked(
        self,
        actor: Actor,
        claims: Collection[OwnershipClaim],
        stored: Mapping[str, PartitionOwnership],
    ) -> None:
        """A processor asks for these writes at once: at most one of them takes from the living.

        A renewal of what was taken from it meanwhile is none: it names an etag of the past.
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
        if victim is None or is_strange or not self.is_presence_whole:
            return
        had_s = self.now_s() - victim.since_s
        if had_s < self.handoff_timeout.total_seconds() * CLOCK_RATE_MARGIN:
            self.report(
                "hasty",
                f"{actor.name} robs {victim.actor.name} of {partition_id} after {had_s} s",
            )

    def owned(
        self,
        actor: Actor,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
        *,
        was_live: bool,
    ) -> None:
        """An ownership record was written by *actor* over one that was alive or not."""
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
            self._check_given(actor, partition_id)
        if holding is not None and holding.actor is not actor and was_live:
            self._robbed_at_s[partition_id, holding.actor] = now_s
            self._stolen_count += former != after.owner_id
        if is_mine:
            self._holding[partition_id] = Holding(actor, now_s)
        else:
            self._holding.pop(partition_id, None)

    def declared_dead(self, owner_id: str, stored: Mapping[str, PartitionOwnership]) -> None:
        """A session was ended, and all that it kept alive with it."""
        self.dead_etags |= {o.etag for o in stored.values() if o.owner_id == owner_id}

    def is_held(self, partition_id: str, owner_id: str) -> bool:
        """Whether its record is one that its owner wrote: not a gift that came too late."""
        holding = self._holding.get(partition_id)
        return holding is not None and holding.actor.name == owner_id

    def edited(self, partition_id: str) -> None:
        """An operator took a record away, or wrote another owner into it."""
        holding = self._holding.pop(partition_id, None)
        if holding is not None:
            self._robbed_at_s[partition_id, holding.actor] = self.now_s()

    def _replace(self, etag: str | None) -> None:
        if etag is None:
            return
        if etag in self._replaced:
            self.report("twice", f"two writes replaced {etag}")
        self._replaced.add(etag)

    def _check_given(self, actor: Actor, partition_id: str) -> None:
        """Who gives a partition away has nothing under way in it."""
        calls = self._calls.get(partition_id, ())
        if any(call.actor is actor for call in calls) and not actor.is_killed:
            self.report("given", f"{actor.name} gave {partition_id} away during a call")

    # Checkpoints.

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
        """Each event counts once, but for those that were given up (and maybe handled later)."""
        buried_count = sum(n <= number for n in self._buried.get(partition_id, ()))
        if not number + 1 - buried_count <= int(state or b"0") <= number + 1:
            self.report("state", f"{partition_id} at {number} has counted {state!r}")

    def _check_writer(self, actor: Actor, update: CheckpointUpdate) -> None:
        partition_id, writer = update.partition_id, update.writer
        # Of two under one name it may take some looks until one yields: till then both are "it".
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
        """An operator took a checkpoint away: what it proved is gone with it."""
        self._writers.pop(partition_id, None)

    def _find_missing(self, partition_id: str, number: int) -> int | None:
        """The first event up to this one that nobody handled."""
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
            # Who was robbed may not know; who fell silent must, before anybody can take over.
            robbed_at_s = self._robbed_at_s.get((partition_id, actor), float("-inf"))
            if self.now_s() - robbed_at_s > self.expiration.total_seconds():
                self.report(
                    "overlap",
                    f"{actor.name} acts on {partition_id}, which {holding.actor.name} took over",
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
        # Who was robbed learns it late; until then both act, which no protocol can avoid.
        robbed_at_s = max(
            self._robbed_at_s.get((partition_id, actor), float("-inf"))
            for actor in (call.actor, other.actor)
        )
        if self.now_s() - robbed_at_s > self.expiration.total_seconds():
            self.report(
                "overlap",
                f"{call.actor.name} and {other.actor.name} both trust their lease of "
                f"{partition_id}",
            )

    def went_on(self, actor: Actor, context: PartitionContext) -> None:
        """A handler that hears when it is cut goes on after it waited for something.

        One whose process stood still, or whose clock jumped, learns a look later that its time is
        over.
        """
        if not context.is_owned and self.now_s() - actor.disturbed_at_s > NOTICED_WITHIN_S:
            self.report("fence", f"{actor.name} goes on with {context.partition_id}")

    def done(self, partition_id: str, event: ReceivedEvent) -> None:
        """A handler is through with an event."""
        self._count(partition_id)[event.sequence_number] += 1

    def buried(self, actor: Actor, partition_id: str, event: ReceivedEvent) -> None:
        """An event was given up, and its dead letter is stored."""
        self.note("buried", f"{actor.name}: {partition_id}/{event.sequence_number}")
        self._buried.setdefault(partition_id, set()).add(event.sequence_number)
        self.done(partition_id, event)

    def died(self, actor: Actor, place: tuple[str, int]) -> None:
        """A process is about to die of an event."""
        self.note("died", f"{actor.name}: {place}")
        self._deaths[place] += 1
        if self._deaths[place] > self.deaths_max:
            self.report("deaths", f"{actor.name} is the {self._deaths[place]}. to die of {place}")

    def hung(self, actor: Actor, place: tuple[str, int], for_s: float) -> None:
        """A call that waited for ever was cut off."""
        self.note("hung", f"{actor.name}: {place}")
        if for_s > self.hang_max_s:
            self.report("hang", f"{actor.name} hung at {place} for {for_s} s")

    def ended(self, call: Call) -> None:
        """A call of a handler is over, whatever came of it."""
        self._calls[call.context.partition_id].remove(call)

    def _count(self, partition_id: str) -> defaultdict[int, int]:
        return self.handled.setdefault(partition_id, defaultdict(int))

    @property
    def stolen_count(self) -> int:
        """How often a partition was taken from an owner that lived."""
        return self._stolen_count

    @property
    def duplicate_count(self) -> int:
        """How often an event was handled again."""
        return sum(n - 1 for counts in self.handled.values() for n in counts.values() if n)
