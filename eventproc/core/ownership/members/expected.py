"""The members that a roster names, and which of them the plan waits for.

Rule 1: the plan keeps a share for an expected member that has not joined yet, for as long as
``patience``. Meanwhile, partitions of that share stay with their live owner, or without one. So
the first processors of a group do not claim everything, only to hand it over a moment later.
Rule 2: this ends when the member has joined. If it then leaves or dies, its share goes to the
others at once.
Rule 3: if the roster does not answer, this processor uses the members that the schema names: those
that the leader expected. So neither an unreachable API server nor a new leader changes the plan.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from eventproc.core.placement.schema import Schema
from eventproc.models import Member

HAS_JOINED: Final = float("-inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMembers:
    """What a processor knows of the members that its group should have."""

    names: frozenset[str] = frozenset()

    since_s: Mapping[str, float] = field(default_factory=dict)
    """Since when each of them has been expected; ``HAS_JOINED`` if it has joined since."""

    def awaited(self, patience: timedelta, now_s: float) -> frozenset[str]:
        """Return those that the plan waits for."""
        oldest_s = now_s - patience.total_seconds()
        return frozenset(name for name, since_s in self.since_s.items() if since_s > oldest_s)


def observe_expected(
    known: ExpectedMembers,
    found: frozenset[str] | None,
    schema: Schema | None,
    members: Collection[Member],
    now_s: float,
) -> ExpectedMembers:
    """Return what is known after a poll.

    Args:
        known: What was known before.
        found: What the roster says; ``None`` if this processor has not read it.
        schema: The one that the group follows.
        members: The live members.
        now_s: This processor's time.
    """
    if found is None:
        found = known.names if schema is None else frozenset(schema.expected)
    joined = {member.owner_id for member in members} | set(() if schema is None else schema.members)

    def since_s(name: str) -> float:
        return HAS_JOINED if name in joined else known.since_s.get(name, now_s)

    return ExpectedMembers(names=found, since_s={name: since_s(name) for name in found})
