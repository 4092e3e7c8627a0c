"""Which resources a member is a backup of."""

from collections.abc import Mapping

from eventproc.core.placement.placement import Placement
from eventproc.core.placement.state import GroupState


def backed_up_by(
    me: str, planned: Mapping[str, str], state: GroupState, placement: Placement
) -> frozenset[str]:
    """Return the resources of others that *me* is a backup of."""
    backups = placement.backups_of(state, planned) if me in state.members else None
    if backups is None:
        return frozenset()
    return frozenset(r for r in state.resources if planned.get(r) != me and me in backups(r))
