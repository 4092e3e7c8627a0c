"""``Even``: all members own equally many resources, or one more than others."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from eventproc._core.placement.clockwise import Circle, Clockwise
from eventproc._core.placement.placement import GroupState, MemberFacts, Order, Placement, rank
from eventproc._core.placement.plan import plan


@dataclass(frozen=True)
class Even(Placement):
    """Shares resources evenly, with the fewest moves.

    Worked example. 18 partitions, owners A, B, C with 6 each, and D joins. 18 div 4 is 4, rest 2.
    All three of A, B, C hold more than 4, so the two extra places go to two of them, say A and B
    by their rank. Quotas: A 5, B 5, C 4, D 4. A and B give one each and C two, all to D: four
    moves, which is the minimum. The rule "steal only from an owner with more than P/N + 1" stops
    at 5, 5, 5, 3.
    """

    __module__ = "eventproc"

    admits_foreign: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = False
    uses_ordinals: ClassVar[bool] = False

    def quotas(self, state: GroupState) -> Mapping[str, int | None]:
        """Return equal quotas, or one apart."""
        foreign = [name for name, facts in state.members.items() if facts.is_foreign]
        return even_quotas(len(state.resources), state.held_count_by_member, foreign)

    def order(self, state: GroupState) -> Order:
        """Return all members clockwise from the resource, on a circle with one point for each."""
        return Clockwise(Circle.of(state.members))


def even_quotas(
    resource_count: int, held_count_by_owner: Mapping[str, int], foreign: Collection[str] = ()
) -> dict[str, int]:
    """How many resources each owner should have: all equal, or one apart.

    The extra places go first to owners that already hold more than the minimum, whatever the exact
    counts, so the quotas stay while resources move. Among these a foreign owner comes first,
    because its surplus could only be stolen; among the others it comes last, because no other
    member can make it claim one more.
    """
    if not held_count_by_owner:
        return {}
    minimum, extra_count = divmod(resource_count, len(held_count_by_owner))

    def precedence(owner_id: str) -> tuple[bool, bool, int, str]:
        holds_extra = held_count_by_owner[owner_id] > minimum
        return (not holds_extra, (owner_id in foreign) != holds_extra, rank(owner_id), owner_id)

    extra = set(sorted(held_count_by_owner, key=precedence)[:extra_count])
    return {owner_id: minimum + (owner_id in extra) for owner_id in held_count_by_owner}


def even_plan(
    resources: Collection[str],
    owner_by_resource: Mapping[str, str],
    members: Collection[str],
    *,
    foreign: Collection[str] = (),
) -> dict[str, str]:
    """Return the plan of ``Even`` for members of which only the names matter."""
    state = GroupState(
        resources=tuple(resources),
        owner_by_resource=owner_by_resource,
        members={name: MemberFacts(is_foreign=name in foreign) for name in members},
    )
    return plan(state, Even())
