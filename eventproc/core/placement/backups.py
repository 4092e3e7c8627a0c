"""Which resources a member is a backup of: it should be ready to take them over."""

from collections.abc import Mapping
from itertools import islice

from eventproc.core.placement.placement import Placement
from eventproc.core.placement.state import GroupState


def backed_up_by(
    me: str, planned: Mapping[str, str], state: GroupState, placement: Placement
) -> frozenset[str]:
    """Return the resources whose planned owner is another member, and that *me* follows closely.

    The backups of a resource are the first ``placement.backup_count`` members in its order besides
    its owner. If one of them is full when the owner goes, a later one takes the resource.
    """
    count = placement.backup_count
    if not count or me not in state.members:
        return frozenset()
    order = placement.order(state)
    return frozenset(
        resource
        for resource in state.resources
        if (owner := planned.get(resource)) != me
        and me in islice((m for m in order(resource) if m != owner), count)
    )
