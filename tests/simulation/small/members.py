"""What members may do by their status: one that leaves takes nothing, and is given nothing."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from eventproc.models import Member, MemberStatus, OwnershipClaim, PartitionOwnership
from tests.simulation.actor import Actor
from tests.simulation.moves import MoveInvariants

KNOWN_AFTER_S = 1.0
"""Seconds after which every member has read that another one leaves, if the store is quick: they
poll four times in a second while something has to change."""


@dataclass
class MemberInvariants(MoveInvariants):
    """Checks claims and hand-overs against the status of members; counts releases.

    - *leaver*: a processor claims while it leaves, or gets a partition though all know that;
    - *repeated*: one request writes a record twice, of which the second write cannot be won.
    """

    is_quick: bool = True
    """Whether requests have taken no longer than usual, so that all know what was written."""

    released_count: int = 0
    """How often an owner gave a partition up without naming the next owner."""

    given_to: set[str] = field(default_factory=set)
    """The processors to which another one asked to hand a partition over."""

    opened: Counter[str] = field(default_factory=Counter)
    """How many links were opened, by partition."""

    announcers: dict[str, Actor] = field(default_factory=dict)
    """The process of each incarnation that wrote a member record."""

    active_since_s: dict[str, float] = field(default_factory=dict)
    """Since when each processor has had the status *active*."""

    _leaving_since_s: dict[str, float] = field(default_factory=dict)

    _given_since_s: dict[tuple[str, str | None, str], float] = field(default_factory=dict)
    """When a write that gives a partition away was first sent, by the partition, the ETag that it
    expects and the new owner. A write without an answer is repeated as it is."""

    def announced(self, actor: Actor, member: Member) -> None:
        """Note since when a processor leaves."""
        super().announced(actor, member)
        if actor.name == member.owner_id:
            self.announcers[member.incarnation] = actor
        if member.status is MemberStatus.ACTIVE:
            self.active_since_s.setdefault(member.owner_id, self.now_s())
        else:
            self.active_since_s.pop(member.owner_id, None)
        if member.status is MemberStatus.LEAVING:
            self._leaving_since_s.setdefault(member.owner_id, self.now_s())
        else:
            self._leaving_since_s.pop(member.owner_id, None)

    def has_left(self, for_s: float) -> bool:
        """Whether a processor has begun to leave in the last *for_s* seconds."""
        return self.now_s() - max(self._leaving_since_s.values(), default=float("-inf")) <= for_s

    def asked(
        self,
        actor: Actor,
        claims: Collection[OwnershipClaim],
        stored: Mapping[str, PartitionOwnership],
    ) -> None:
        """Note to which processors partitions are handed over; no write repeats another one."""
        super().asked(actor, claims, stored)
        if len({claim.partition_id for claim in claims}) < len(claims):
            self.report("repeated", f"{actor.name} writes a record twice in one request: {claims}")
        for claim in claims:
            if claim.owner_id not in {None, actor.name}:
                self.given_to.add(str(claim.owner_id))
                key = claim.partition_id, claim.expected_etag, str(claim.owner_id)
                self._given_since_s.setdefault(key, self.now_s())

    def owned(
        self,
        actor: Actor,
        before: PartitionOwnership | None,
        after: PartitionOwnership,
        *,
        was_live: bool,
    ) -> None:
        """A processor that leaves takes nothing, and is given nothing."""
        super().owned(actor, before, after, was_live=was_live)
        former = None if before is None else before.owner_id
        self.released_count += after.owner_id is None and former == actor.name
        if after.owner_id in {None, former} or not self.is_quick or actor.is_foreign:
            return
        owner_id, expected = str(after.owner_id), None if before is None else before.etag
        sent_s = self._given_since_s.get((after.partition_id, expected, owner_id), self.now_s())
        left_for_s = sent_s - self._leaving_since_s.get(owner_id, float("inf"))
        if left_for_s > KNOWN_AFTER_S:
            self.report(
                "leaver",
                f"{actor.name} gives {after.partition_id} to {after.owner_id}, which has been "
                f"leaving for {left_for_s:.3f} s",
            )
