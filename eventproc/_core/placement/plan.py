"""The plan: which member should own each resource. Every processor computes the same plan.

Rule 1: the plan is a function of the records in the store, which all processors read. The same
listing gives the same plan on every processor, so claims do not collide and the group needs no
coordinator.
Rule 2: with a sticky placement an owner keeps what it holds up to its quota; only resources
without an owner, and surplus, change hands. So the plan moves the fewest resources that the quotas
allow.
Rule 3: it does not change while it is carried out. After any part of it has been done, in any
order, the plan of what is left is the rest of the same plan. For a placement that is not sticky
that is so because its plan does not depend on owners. For a sticky one it has two reasons. Its
quotas do not change (see ``Even``). And each free resource, in a fixed order, takes the first
member of its own order that still has a place; so taking away one resource and the place that it
took does not change where the others go.
Rule 4: if the quotas are too small for all resources, a sticky placement gives the places to those
without an owner first. The others have no planned owner: they stay with their owner, if any.
"""

from collections.abc import Iterable, Mapping, Sequence

from eventproc._core.placement.clockwise import Clockwise, Places
from eventproc._core.placement.placement import GroupState, Order, Placement, by_rank


def plan(state: GroupState, placement: Placement) -> dict[str, str]:
    """Return the member that each resource should have; without members, an empty plan."""
    if not state.members:
        return {}
    quotas = placement.quotas(state)
    order = placement.order(state)
    planned: dict[str, str] = {}
    if placement.is_sticky:
        if _is_balanced(state, quotas, order):
            return dict(state.owner_by_resource)  # The common case: the plan changes nothing.
        planned = _kept(state, quotas, order)
    left = dict(quotas)
    for member in planned.values():
        count = left[member]
        left[member] = None if count is None else count - 1
    free = [resource for resource in state.resources if resource not in planned]
    is_sticky = placement.is_sticky
    dealt = _by_urgency(free, state, left) if is_sticky else sorted(free, key=by_rank)
    planned.update(_deal(dealt, left, order))
    return planned


def _is_balanced(state: GroupState, quotas: Mapping[str, int | None], order: Order) -> bool:
    """Whether each member owns as many resources as its quota, and may own any resource."""
    return (
        isinstance(order, Clockwise)
        and state.owner_by_resource.keys() == set(state.resources)
        and state.held_count_by_member == quotas
        and sum(state.held_count_by_member.values()) == len(state.resources)
    )


def _kept(state: GroupState, quotas: Mapping[str, int | None], order: Order) -> dict[str, str]:
    """Return what owners keep: what they hold and may have; above a quota, the first by rank."""
    is_open = isinstance(order, Clockwise)
    held_by_member: dict[str, list[str]] = {member: [] for member in quotas}
    for resource in state.resources:
        owner_id = state.owner_by_resource.get(resource)
        if owner_id in held_by_member and (is_open or owner_id in order(resource)):
            held_by_member[owner_id].append(resource)
    kept = {}
    for member, held in held_by_member.items():
        quota = quotas[member]
        if quota is not None and len(held) > quota:
            held.sort(key=by_rank)
            del held[quota:]
        kept.update(dict.fromkeys(held, member))
    return kept


def _by_urgency(
    free: Sequence[str], state: GroupState, left: Mapping[str, int | None]
) -> Sequence[str]:
    """Return the resources in the order in which a sticky plan deals them: by rank; see rule 4.

    Whether there are too few places does not change while the plan is carried out: each resource
    that moves takes one. Those that get a place are dealt by rank, too, because an owner may
    release one before the next member claims it.
    """
    by_order = sorted(free, key=by_rank)
    counts = [count for count in left.values() if count is not None]
    if len(counts) < len(left) or sum(counts) >= len(free):
        return by_order
    owned_last = sorted(by_order, key=lambda r: state.owner_by_resource.get(r) in state.members)
    placed = set(owned_last[: sum(counts)])
    return sorted(by_order, key=lambda resource: resource not in placed)


def _deal(free: Iterable[str], left: dict[str, int | None], order: Order) -> dict[str, str]:
    """Assign each resource to the first member of its order that has a place left."""
    if isinstance(order, Clockwise):
        first = Places(order.circle, left).next
    else:

        def first(resource: str) -> str | None:
            return next((member for member in order(resource) if left.get(member, 0) != 0), None)

    dealt = {}
    for resource in free:
        member = first(resource)
        if member is not None:
            dealt[resource] = member
            count = left[member]
            left[member] = None if count is None else count - 1
    return dealt


def backed_up_by(
    me: str, planned: Mapping[str, str], state: GroupState, placement: Placement
) -> frozenset[str]:
    """Return the resources of others that *me* is a backup of."""
    backups = placement.backups_of(state, planned) if me in state.members else None
    if backups is None:
        return frozenset()
    return frozenset(r for r in state.resources if planned.get(r) != me and me in backups(r))
