"""The published plan: a published plan with its number, as a group record."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from eventproc._base.bounded_json import read_json
from eventproc.errors import StoreCorruptError

PLAN_RECORD: Final = "plan"
"""The name of the group record."""

_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class PublishedPlan:
    """A plan that the leader of a group published."""

    number: int
    """Higher than those of all earlier published plans of the group."""

    leader: str
    incarnation: str
    """The incarnation of the leader's process."""

    placement: str
    """The name of the placement that the group followed: ``Published:...``."""

    members: tuple[str, ...]
    """The members that the plan is for, sorted."""

    owner_by_resource: Mapping[str, str | None]
    """The planned owner of each resource; ``None`` if no member may have it. The owner may be a
    member that a roster expects, and that has not joined yet."""

    expected: tuple[str, ...] = ()
    """The members that the leader's roster names, sorted."""

    loads: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The load of each resource that was measured, if the group shares by load."""

    moved_ms: tuple[int, ...] = ()
    """When resources were moved because of their load, in the last hour."""

    def covers(self, resources: Collection[str], members: Collection[str]) -> bool:
        """Whether the plan is for just these resources and members."""
        return self.owner_by_resource.keys() == set(resources) and set(self.members) == set(members)

    def says_as(self, other: "PublishedPlan") -> bool:
        """Whether another one plans the same, for the same members by the same placement."""
        return (self.placement, self.members, self.expected, self.owner_by_resource) == (
            *(other.placement, other.members, other.expected, other.owner_by_resource),
        )

    def as_bytes(self) -> bytes:
        """Encode the plan as JSON: resources by owner, so that a long plan stays short."""
        held: dict[str, list[str]] = {}
        free: list[str] = []
        for resource, owner_id in self.owner_by_resource.items():
            (free if owner_id is None else held.setdefault(owner_id, [])).append(resource)
        content = {
            "version": _VERSION,
            "number": self.number,
            "leader": self.leader,
            "incarnation": self.incarnation,
            "placement": self.placement,
            "members": self.members,
            "resources": held,
            "unplaced": free,
        }
        if self.expected:
            content["expected"] = self.expected
        if self.loads:
            content["loads"] = {r: float(f"{load:.3g}") for r, load in self.loads.items()}
        if self.moved_ms:
            content["moved_ms"] = self.moved_ms
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """The published plan's record, as a poll found it."""

    etag: str | None
    """The record's ETag; ``None`` if there is no record."""

    published: PublishedPlan | None
    """``None`` if there is none, or it is not a published plan."""


def plan_in(content: bytes) -> PublishedPlan | None:
    """Decode a published plan; ``None`` if it is not one, so that the leader writes another.

    Raises:
        StoreCorruptError: a later version of eventproc wrote it.
    """
    try:
        found: Mapping[str, Any] = read_json(content)
        version = found["version"]
        if isinstance(version, int) and version > _VERSION:
            raise StoreCorruptError(
                f"the group's published plan has version {version}, written by a later eventproc: "
                "use that"
            )
        plan: dict[str, str | None] = {
            str(r): str(owner_id) for owner_id, rs in found["resources"].items() for r in rs
        }
        plan |= dict.fromkeys(map(str, found["unplaced"]))
        return PublishedPlan(
            number=int(found["number"]),
            leader=str(found["leader"]),
            incarnation=str(found["incarnation"]),
            placement=str(found["placement"]),
            members=tuple(map(str, found["members"])),
            owner_by_resource=plan,
            expected=tuple(map(str, found.get("expected", ()))),
            loads={str(r): float(load) for r, load in found.get("loads", {}).items()},
            moved_ms=tuple(map(int, found.get("moved_ms", ()))),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
