"""A group that follows a published plan: which one each member follows, and who writes the next.

Rule 1: a published plan is written only if the record still has the ETag that was read, and with a
higher number. So if two members both consider themselves the leader, one of the writes fails; also
if its writer was suspended in the middle of its cycle.
Rule 2: a member follows the highest number that it has seen, even if an operator deletes the record
or restores an old one. The leader then writes it again. A number is at least the store's time in
milliseconds, so that it is above earlier ones that no member remembers.
Rule 3: the leader is the process that the record names, while it has a share. Otherwise it is the
first member in sorted order that has the placement itself. There is no lease and no election:
rule 1 decides.
Rule 4: what the published plan does not cover stays as it is: the resources of a member that is not
there any more, and new resources. The leader plans for these in its next cycle.
Rule 5: the leader plans from the published plan, not from the records, so a plan that is being
carried out does not change. It publishes a published plan only if it differs from the one before.
Rule 6: the leader also plans for members that a roster expects (``members.py``). What is
planned for one that has not come yet stays as it is, by rule 4.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from eventproc._core.ownership.group import Group
from eventproc._core.placement.by_load import HOUR, is_structural
from eventproc._core.placement.loads import Loads, in_report
from eventproc._core.placement.placement import GroupState, MemberFacts
from eventproc._core.placement.plan import plan
from eventproc._core.placement.published import Published, measured_by
from eventproc._core.placement.published_plan import PublishedPlan, StoredPlan
from eventproc.models import Member


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A published plan to write, and the etag that it replaces."""

    published: PublishedPlan
    etag: str | None


def highest(known: PublishedPlan | None, stored: StoredPlan | None) -> PublishedPlan | None:
    """Return the published plan with the highest number that this processor has seen."""
    found = stored.published if stored else None
    if found is None or (known is not None and found.number <= known.number):
        return known
    return found


def followed(known: PublishedPlan | None, group: Group) -> PublishedPlan | None:
    """Return the published plan that the group follows, if its placement is in force."""
    placement = group.placement
    is_in_force = isinstance(placement, Published) and known and known.placement == placement.name
    return known if is_in_force else None


def published_plan(group: Group) -> dict[str, str]:
    """Return the owner that each resource should have: the planned one, or else its live one."""
    return _published_for(group, group.sharing)


def _published_for(group: Group, members: Collection[str]) -> dict[str, str]:
    planned = {} if group.published is None else group.published.owner_by_resource
    return dict(group.live_owner_by_partition) | {
        p: owner_id
        for p in group.partition_ids
        if (owner_id := planned.get(p)) is not None and owner_id in members
    }


def unplaced_resources(group: Group) -> frozenset[str]:
    """Return the resources that no member may have, as the leader found."""
    planned: Mapping[str, str | None] = group.published.owner_by_resource if group.published else {}
    return frozenset(p for p in group.partition_ids if planned.get(p, "") is None)


def is_awaited(group: Group) -> bool:
    """Whether the leader has to publish: the newest plan has other resources or members."""
    if not isinstance(group.placement, Published) or not group.sharing:
        return False
    return group.published is None or not group.published.covers(group.partition_ids, group.sharing)


def next_plan(group: Group, placement: Published, loads: Loads | None = None) -> dict[str, str]:
    """Return the plan that the leader publishes next, if nothing changes until then."""
    return plan(_planning_state(group, loads), placement.inner)


def _planning_state(group: Group, loads: Loads | None) -> GroupState:
    """Return what the leader plans from; see rule 5."""
    state = group.state
    members = {name: MemberFacts.of_name(name) for name in group.awaited} | dict(state.members)
    planned = _published_for(group, members)
    return replace(state, members=members, owner_by_resource=planned, loads=loads)


def _loads(group: Group, members: Collection[Member], by: str) -> Loads:
    """Return what the owners measured; the plan has what a new owner has not measured yet."""
    former = group.published
    loads = dict(former.loads) if former else {}
    for member in members:
        owned = [p for p, o in group.live_owner_by_partition.items() if o == member.owner_id]
        loads |= in_report(member.load, by, owned)
    return Loads(
        by_resource={p: loads[p] for p in group.partition_ids if p in loads},
        now_ms=_milliseconds(group.as_of),
        moved_ms=former.moved_ms if former else (),
    )


def _moved_ms(
    state: GroupState, loads: Loads, planned: Mapping[str, str | None]
) -> tuple[int, ...]:
    """Return when resources moved because of their load: formerly, and with this plan."""
    hour_ms = HOUR // timedelta(milliseconds=1)
    former = [at_ms for at_ms in loads.moved_ms if loads.now_ms - at_ms < hour_ms]
    owned = state.owner_by_resource.items()
    now_count = 0 if is_structural(state) else sum(planned[p] != owner for p, owner in owned)
    return (*former, *[loads.now_ms] * now_count)


def leads(group: Group, members: Collection[Member], known: PublishedPlan | None) -> bool:
    """Whether this processor is the leader.

    Args:
        group: The group, as every member with the same listing sees it.
        members: The live members, this one included.
        known: The published plan with the highest number that was seen.
    """
    placement, me = group.placement, group.owner_id
    if not isinstance(placement, Published) or not placement.can_lead:
        return False
    candidates = {
        m.owner_id: m
        for m in members
        if m.owner_id in group.sharing and m.placement == placement.name
    }
    return leader(candidates, known) == me


def publication(
    group: Group,
    members: Collection[Member],
    known: PublishedPlan | None,
    stored: StoredPlan | None,
) -> Publication | None:
    """Return what the leader publishes, if the plan changes.

    Args:
        group: The group, as every member with the same listing sees it.
        members: The live members, this one included.
        known: The published plan with the highest number that was seen.
        stored: What is stored; ``None`` if it was not or could not be read.
    """
    placement = group.placement
    if stored is None or not isinstance(placement, Published):
        return None
    me = next(m for m in members if m.owner_id == group.owner_id)
    by = measured_by(placement)
    loads = None if by is None else _loads(group, members, by)
    found = next_plan(group, placement, loads)
    planned = {p: found.get(p) for p in group.partition_ids}
    published = PublishedPlan(
        number=_next_number(known, group.as_of),
        leader=me.owner_id,
        incarnation=me.incarnation,
        placement=placement.name,
        members=tuple(sorted(group.sharing)),
        owner_by_resource=planned,
        expected=tuple(sorted(group.expected)),
    )
    if loads is not None:
        moved_ms = _moved_ms(_planning_state(group, loads), loads, planned)
        published = replace(published, loads=loads.by_resource, moved_ms=moved_ms)
    if (
        group.published is not None
        and stored.published == known
        and published.says_as(group.published)
    ):
        return None
    return Publication(published=published, etag=stored.etag)


def leader(candidates: Mapping[str, Member], known: PublishedPlan | None) -> str | None:
    """Return the leader of these members; see rule 3."""
    if known is not None and known.leader in candidates:
        named = candidates[known.leader]
        if named.incarnation == known.incarnation:
            return named.owner_id
    return min(candidates, default=None)


def _next_number(known: PublishedPlan | None, as_of: datetime) -> int:
    return max(_milliseconds(as_of), 0 if known is None else known.number + 1)


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
