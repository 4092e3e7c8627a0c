"""One cycle of a processor: from the records that it reads to everything that it writes.

A cycle has four parts, in this order:

1. *read*: the member records first, then the ownership records. In this order a processor that
   starts is seen in at least one of them.
2. ``observe(memory, listing, rules, now)`` in ``memory.py``: what the group is, and since when.
3. ``decide(memory, rules)`` here: the plan, and everything that this processor writes, as
   ``Actions``. ``memory.waiting_for(actions.plan.waits)`` is what the next cycle begins with.
4. *carry out*, in ``_group/balancer.py``, in the order of the fields of ``Actions``.

Between 2 and 4 nothing is read. So "given this listing, what is written?" has one answer, and a
write can only be refused if another processor wrote in between.

Rule 1: an action that relies on another write of the same cycle is made only if that write was
won; otherwise the next cycle decides again. Claims rely on the member record. A claim of a
partition that is recorded as this processor's also relies on a member record that was read *after*
the ownership records: between the two listings this process may have been suspended, and another
one may have taken its owner id.
Rule 2: if another processor has this one's owner id, this one decides nothing else in this cycle:
what it knows of its own leases is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from eventproc._core.ownership.group import Group
from eventproc._core.ownership.lease import Lease
from eventproc._core.ownership.members import (
    ACTIVE,
    MemberStep,
    ends_standby,
    member_step,
    members_to_forget,
)
from eventproc._core.ownership.memory import GroupMemory
from eventproc._core.ownership.moves import Moves, Plan, moves, plan_for
from eventproc._core.ownership.published_plans import Publication, leads, publication
from eventproc._core.ownership.rules import Rules
from eventproc._core.ownership.stability import stable_in_s
from eventproc.models import Member, OwnershipClaim

NO_MOVES: Final = Moves()


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """Everything that one cycle writes; the order of the fields is that of the writes."""

    renewals: tuple[Lease, ...] = ()
    """Leases that the listing contradicts: renewing them, conditionally, shows what is right."""

    member: MemberStep
    """What to do with this processor's own member record."""

    moves: Moves = NO_MOVES
    """Claims, steal and hand-overs. The pumps carry out the hand-overs."""

    is_resuming: bool = False
    """Whether it claims a partition without a lease that is recorded as its own: a newer process
    with this owner id may have written that record."""

    transfers: tuple[OwnershipClaim, ...] = ()
    """Hand-overs of partitions that have no lease and no running handler. There is nothing to
    drain, so they are written at once."""

    publish: Publication | None = None
    """The next published plan of a group that follows a published plan."""

    forgotten: tuple[Member, ...] = ()
    """Member records to delete."""

    plan: Plan
    """The whole plan, and what has to happen before the records agree with it."""

    is_leader: bool = False
    """Whether this processor leads a group that follows a published plan."""

    awaited: frozenset[str] = frozenset()
    """The members that a roster expects, and that the leader waits for."""

    others: tuple[str, ...] = ()
    """The other members that accept a hand-over, without those that may be dead."""

    stable_in_s: float = 0.0
    """In how many seconds the membership has been unchanged for long enough to act; 0: already."""

    others_move: bool = False
    """Whether another member is about to let go of a partition. If this processor leaves, and that
    member has not read this yet, the partition may be handed over to this processor."""

    @property
    def is_balanced(self) -> bool:
        """Whether the plan requires no change of this processor, and no record contradicts it.

        Another incarnation in the member record does. This processor then writes its own record
        again; that fails if the other one wrote meanwhile, so it has to read the record soon.
        """
        return (
            self.moves.is_balanced
            and self.member.rival is None
            and self.publish is None
            and not self.awaited
            and all(lease.is_doubtful for lease in self.renewals)
        )

    @property
    def has_others(self) -> bool:
        """While this processor leaves: whether other members have a share."""
        return bool(self.plan.owner_by_partition)


def decide(memory: GroupMemory, rules: Rules) -> Actions:
    """Return what this processor writes after its newest poll."""
    living, listing, group, now_s = memory.living, memory.listing, memory.group, memory.at_s
    plan = plan_for(group)
    moved = moves(group, plan, rules.strategy)
    is_leader = leads(group, living.members, memory.published)
    standings, owners = group.standing_by_owner, group.live_owner_by_partition.values()
    has_replaced = bool(group.held) and moved.is_balanced
    own = listing.own
    if ends_standby(own, living.members, rules, now_s, has_replaced=has_replaced):
        own = own.changed_to(ACTIVE)
    step = member_step(
        own,
        listing.present,
        rules,
        now_s,
        asked_at_s=listing.asked_at_s,
        owns_something=rules.owner_id in owners,
        is_trusted=listing.is_trusted,
    )
    member = replace(step, has_replaced=has_replaced)
    if member.yields_because is not None:
        return Actions(member=member, plan=plan)
    return Actions(
        member=member,
        renewals=living.contradicted,
        moves=moved,
        is_resuming=any(
            group.recorded_owner(c.partition_id) == rules.owner_id for c in moved.claims
        ),
        transfers=_transfers(group, listing.running, moved.hand_overs),
        publish=_published(memory, rules) if is_leader else None,
        forgotten=members_to_forget(listing.present, {*owners, *living.written_at}, rules),
        plan=plan,
        is_leader=is_leader,
        awaited=group.awaited if is_leader else frozenset(),
        others=tuple(
            sorted(
                owner_id
                for owner_id, standing in standings.items()
                if owner_id != rules.owner_id and standing.has_share and standing.lets_go
                if owner_id not in group.presumed_live
            )
        ),
        stable_in_s=stable_in_s([memory.membership, memory.published_age], rules, now_s),
        others_move=any(
            owner_id not in {rules.owner_id, plan.owner_by_partition.get(p)}
            and standings[owner_id].lets_go
            for p, owner_id in group.live_owner_by_partition.items()
        ),
    )


def _published(memory: GroupMemory, rules: Rules) -> Publication | None:
    """Return what the leader publishes: nothing while it is unsure who the members are."""
    if memory.group.is_unsure or memory.membership.is_unstable(memory.at_s, rules):
        return None
    return publication(
        memory.group, memory.living.members, memory.published, memory.listing.published
    )


def _transfers(
    group: Group, running: frozenset[str], targets: Mapping[str, str | None]
) -> tuple[OwnershipClaim, ...]:
    """Return the hand-overs of partitions without a lease and without a running handler."""
    stored = group.ownership_by_partition
    return tuple(
        OwnershipClaim(
            partition_id=p, owner_id=target, expected_etag=stored[p].etag, epoch=stored[p].epoch
        )
        for p, target in targets.items()
        if p not in group.held | running and p in stored
    )
