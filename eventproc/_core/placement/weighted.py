"""``Weighted``: members own resources in proportion to their weights, up to their capacities."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import ClassVar

from eventproc._core.placement.clockwise import Circle, Clockwise
from eventproc._core.placement.placement import GroupState, Order, Placement, by_rank


@dataclass(frozen=True)
class Weighted(Placement):
    """Shares resources by ``weight``, with the fewest moves, and none above its ``capacity``.

    Each member gets its exact share rounded down, or one more. As with ``Even`` the extra places go
    first to owners that already hold more than that, so the quotas stay while resources move; then
    to the largest fractions. A member whose capacity is below its share gets its capacity, and the
    others share the rest.

    Worked example. 10 resources and weights 2, 1, 1: exact shares 5, 2.5, 2.5. The quotas are 5, 3
    and 2. With a capacity of 4 for the first, the others share 6: 4, 3, 3.
    """

    __module__ = "eventproc"

    uses_ordinals: ClassVar[bool] = False

    def quotas(self, state: GroupState) -> dict[str, int | None]:
        """Return quotas by weight and capacity."""
        capped, shares = _exact_shares(state)
        held_count = state.held_count_by_member
        least = {member: floor(share) for member, share in shares.items()}
        extra_count = len(state.resources) - sum(capped.values()) - sum(least.values())

        def precedence(member: str) -> tuple[bool, Fraction, tuple[int, str]]:
            fraction = shares[member] - least[member]
            return held_count[member] <= least[member], -fraction, by_rank(member)

        extra = sorted(shares, key=precedence)[:extra_count]
        return {**capped, **least, **{member: least[member] + 1 for member in extra}}

    def order(self, state: GroupState) -> Order:
        """Return all members clockwise from the resource, on a circle with one point for each."""
        return Clockwise(Circle.of(state.members))


def _exact_shares(state: GroupState) -> tuple[dict[str, int], dict[str, Fraction]]:
    """Return the members that get their whole capacity, and the exact shares of the others."""
    capped: dict[str, int] = {}
    while True:
        left = len(state.resources) - sum(capped.values())
        weights = {m: Fraction(f.weight) for m, f in state.members.items() if m not in capped}
        total = sum(weights.values())
        shares = {member: left * weight / total for member, weight in weights.items()}
        full = {
            member: capacity
            for member, share in shares.items()
            if (capacity := state.members[member].capacity) is not None and capacity <= share
        }
        if not full:
            return capped, shares
        capped |= full
