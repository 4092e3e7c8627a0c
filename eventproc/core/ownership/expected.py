"""The members that a roster names, and which of them the plan waits for.

Rule 1: the plan has a share for a member that is expected and has not come yet, for as long as
``patience``. Nobody takes that share meanwhile: what has a live owner stays with it, and what has
none stays free. So the first processors of a group do not take everything, to hand it over a moment
later.
Rule 2: it has one only until it has come. The share of a member that leaves or dies goes to the
others at once.
Rule 3: without an answer of the roster, what the schema says counts: what the leader knew when it
published. So an API server that is away changes nothing, nor does a new leader.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from eventproc.core.placement.schema import Schema
from eventproc.models import Member

HAS_COME: Final = float("-inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMembers:
    """What a processor knows of the members that its group should have."""

    names: frozenset[str] = frozenset()

    since_s: Mapping[str, float] = field(default_factory=dict)
    """Since when each of them has been expected; ``HAS_COME`` if it was there meanwhile."""

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
    come = {member.owner_id for member in members} | set(() if schema is None else schema.members)

    def since_s(name: str) -> float:
        return HAS_COME if name in come else known.since_s.get(name, now_s)

    return ExpectedMembers(names=found, since_s={name: since_s(name) for name in found})
