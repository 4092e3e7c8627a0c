"""A group that follows a published plan: which schema each member follows, and who writes the next.

Rule 1: the record of the schema is replaced only on its etag, and with a higher number. So of two
members that both take themselves for the leader one is first, and the other loses its write, also
if it was suspended in the middle of its cycle.
Rule 2: a member follows the highest number that it has seen, also if somebody deletes the record or
restores an old one. The leader then writes it again. A number is at least the store's time in
milliseconds, so that it is above the earlier ones although no member remembers them.
Rule 3: the leader is the process that the record names, while it has a share. Otherwise it is the
first member in sorted order that has the placement itself. There is no lease and no election:
rule 1 decides.
Rule 4: what the schema does not cover stays as it is: the resources of a member that is not there
any more, and new resources. The leader publishes in its next cycle.
Rule 5: the leader plans from the schema, not from the records, so a plan that is being carried out
does not change. It publishes only if that gives another plan.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from eventproc.core.ownership.group import Group
from eventproc.core.placement.plan import plan
from eventproc.core.placement.published import Published
from eventproc.core.placement.schema import Schema, StoredSchema
from eventproc.models import Member


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A schema to write, and the etag that it replaces."""

    schema: Schema
    etag: str | None


def highest(known: Schema | None, stored: StoredSchema | None) -> Schema | None:
    """Return the schema with the highest number that this processor has seen."""
    found = stored.schema if stored else None
    if found is None or (known is not None and found.number <= known.number):
        return known
    return found


def followed(known: Schema | None, group: Group) -> Schema | None:
    """Return the schema that the group follows, if its placement is the one that is in force."""
    placement = group.placement
    is_in_force = isinstance(placement, Published) and known and known.placement == placement.name
    return known if is_in_force else None


def published_plan(group: Group) -> dict[str, str]:
    """Return the owner that each resource should have: by the schema, or else its live one."""
    live, schema, sharing = group.live_owner_by_partition, group.schema, group.sharing
    planned = {} if schema is None else schema.owner_by_resource
    return dict(live) | {
        p: owner_id
        for p in group.partition_ids
        if (owner_id := planned.get(p)) is not None and owner_id in sharing
    }


def unplaced_resources(group: Group) -> frozenset[str]:
    """Return the resources that no member may have, as the leader found."""
    planned: Mapping[str, str | None] = group.schema.owner_by_resource if group.schema else {}
    return frozenset(p for p in group.partition_ids if planned.get(p, "") is None)


def is_awaited(group: Group) -> bool:
    """Whether the next schema is to come: the newest one is for another group."""
    if not isinstance(group.placement, Published) or not group.sharing:
        return False
    return group.schema is None or not group.schema.covers(group.partition_ids, group.sharing)


def next_plan(group: Group, placement: Published) -> dict[str, str]:
    """Return the plan that the leader publishes next, if nothing changes until then."""
    return plan(replace(group.state, owner_by_resource=published_plan(group)), placement.inner)


def publication(
    group: Group, members: Collection[Member], known: Schema | None, stored: StoredSchema | None
) -> Publication | None:
    """Return what this processor publishes, if it is the leader and the plan changes.

    Args:
        group: The group, as every member with the same listing sees it.
        members: The live members, this one included.
        known: The schema with the highest number that was seen.
        stored: What is stored; ``None`` if it was not or could not be read.
    """
    placement, me = group.placement, group.owner_id
    if not isinstance(placement, Published) or not placement.can_lead or stored is None:
        return None
    candidates = {m.owner_id: m for m in members if _may_lead(m, group)}
    if me not in candidates or leader(candidates, known) != me:
        return None
    planned = next_plan(group, placement)
    schema = Schema(
        number=_next_number(known, stored, group.as_of),
        leader=me,
        incarnation=candidates[me].incarnation,
        placement=placement.name,
        members=tuple(sorted(group.sharing)),
        owner_by_resource={p: planned.get(p) for p in group.partition_ids},
    )
    if group.schema is not None and stored.schema == known and schema.says_as(group.schema):
        return None
    return Publication(schema=schema, etag=stored.etag)


def leader(candidates: Mapping[str, Member], known: Schema | None) -> str | None:
    """Return the leader of these members; see rule 3."""
    if known is not None and known.leader in candidates:
        named = candidates[known.leader]
        if named.incarnation == known.incarnation:
            return named.owner_id
    return min(candidates, default=None)


def _may_lead(member: Member, group: Group) -> bool:
    """Whether a member has a share, and surely has the placement."""
    placement = group.placement
    assert placement is not None, "the group follows a published placement"
    return member.owner_id in group.sharing and member.placement == placement.name


def _next_number(known: Schema | None, stored: StoredSchema, as_of: datetime) -> int:
    seen = [schema.number for schema in (known, stored.schema) if schema is not None]
    return max(int(as_of.timestamp() * 1000), *(number + 1 for number in seen), 0)
