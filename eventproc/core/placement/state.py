"""What a placement sees of a group: the same on every processor that reads the same records."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final, Self

from eventproc.core.placement.loads import Loads
from eventproc.models import Member

_NUMBER_AT_END: Final = re.compile(r"[0-9]+$")
_DIGITS_MAX: Final = 18
"""Most digits of an ordinal in a name: Python converts no number of thousands of digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """What a placement may know of a member."""

    weight: float = 1.0
    """Its share relative to the other members."""

    capacity: int | None = None
    """The most resources that it takes; ``None``: no limit."""

    ordinal: int | None = None
    """Its number in a numbered set of processors, beginning at 0."""

    deployment_id: str = ""
    is_foreign: bool = False
    """Whether it is a processor of an Azure SDK, which follows no placement of ours."""

    @classmethod
    def of(cls, member: Member) -> Self:
        """Return what a member record says."""
        return cls(
            weight=_usable(member.weight),
            capacity=member.capacity,
            ordinal=member.ordinal,
            deployment_id=member.deployment_id,
        )

    @classmethod
    def of_name(cls, owner_id: str) -> Self:
        """Return the facts of a member that has not joined yet: its name may have its number."""
        return cls(ordinal=ordinal_in(owner_id))


def _usable(weight: object) -> float:
    """Return a weight; 1 for what is no positive number: a damaged record ends no plan."""
    is_number = isinstance(weight, int | float) and 0 < weight < inf
    return float(weight) if is_number else 1.0  # type: ignore[arg-type]


def ordinal_in(owner_id: str) -> int | None:
    """Return the number at the end of a name: 3 of ``consumer-3``; ``None`` without one."""
    found = _NUMBER_AT_END.search(owner_id)
    return int(found.group()) if found and len(found.group()) <= _DIGITS_MAX else None


@dataclass(frozen=True, kw_only=True)
class GroupState:
    """The input of a placement."""

    resources: tuple[str, ...]
    """All resources: the partition ids of a hub, in its order, or names."""

    owner_by_resource: Mapping[str, str]
    """The live owner of each resource that has one. An owner may be no member: it leaves."""

    members: Mapping[str, MemberFacts]
    """The members that may get resources, by owner id, whether they own any or not."""

    expected: frozenset[str] = frozenset()
    """The members that a roster names, whether they are there or not; none without a roster."""

    loads: Loads | None = None
    """What the owners measured; only in the state that the leader of a group plans from."""

    @cached_property
    def held_count_by_member(self) -> Mapping[str, int]:
        """How many of the resources each member owns."""
        counts = Counter(map(self.owner_by_resource.get, self.resources))
        return {member: counts[member] for member in self.members}
