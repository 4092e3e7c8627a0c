"""Nothing of a paused partition reaches a handler, whatever happens in the world."""

from collections.abc import Callable
from dataclasses import dataclass, field

from eventproc._core.ownership.pauses import NO_PAUSES, PAUSES_RECORD, Pauses, pauses_in
from eventproc.models import GroupRecord
from tests.simulation.actor import Actor
from tests.simulation.invariants import Call
from tests.simulation.small.members import MemberInvariants


@dataclass
class PauseInvariants(MemberInvariants):
    """Checks the calls of handlers against what an operator has paused.

    - *paused*: a handler gets events of a paused partition, in a process that began after the
      pause, or that has run a whole cycle since it read of it.
    """

    pauses: Pauses = NO_PAUSES
    """What is paused now."""

    cycle_count: Callable[[Actor], int] = lambda _: 0
    """Returns how many cycles a processor has run."""

    knowing: dict[Actor, int] = field(default_factory=dict)
    """The processors that have read what is paused now, and how many cycles each had run then."""

    _paused_at_s: float = 0.0
    """When an operator last changed what is paused."""

    def changed(self, pauses: Pauses) -> None:
        """An operator paused or resumed."""
        if pauses == self.pauses:
            return  # Nothing was written.
        self.pauses = pauses
        self._paused_at_s = self.now_s()
        self.knowing.clear()
        what = "the whole group" if pauses.group else list(pauses.by_partition)
        self.note(f"paused: {what}", "an operator")

    def record_read(self, actor: Actor, record: GroupRecord | None) -> None:
        """Note which processors know what is paused now."""
        if record is None or record.name != PAUSES_RECORD:
            return
        self.note("read what is paused", actor.name)
        if pauses_in(record.content) == self.pauses:
            self.knowing.setdefault(actor, self.cycle_count(actor))

    def check_paused(self, call: Call) -> None:
        """Report a call for a partition that is paused, as its processor has to know."""
        partition_id, actor = call.context.partition_id, call.actor
        # Not by ``Pauses.of``, which is what is tested.
        if self.pauses.group is None and partition_id not in self.pauses.by_partition:
            return
        before = self.knowing.get(actor)
        has_followed = before is not None and self.cycle_count(actor) > before
        if has_followed or actor.began_s > self._paused_at_s:
            self.report("paused", f"{actor.name} gets events of {partition_id}, which is paused")
