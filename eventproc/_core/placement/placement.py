"""``Placement``: which member of a group should have which resource, by what it sees of the group.

Every processor computes the same plan from the same records, so the group needs no coordinator. A
placement says only which member *should* have a resource. Which one *may* act is decided by the
lease alone: members that see different records, or follow different placements for a while, cost
time, never safety.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import inf
from typing import ClassVar, Final, Self, TypeAlias

from eventproc._base.public_names import public_name
from eventproc._core.placement.loads import Loads
from eventproc.models import Member

_NUMBER_AT_END: Final = re.compile(r"[0-9]+$")
_DIGITS_MAX: Final = 18
"""Most digits of an ordinal in a name: Python converts no number of thousands of digits."""


@lru_cache(maxsize=1 << 16)
def rank(name: str) -> int:
    """Hash a name to a number below 2 ** 64: an order that is the same on every machine."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


def by_rank(name: str) -> tuple[int, str]:
    """Return the key that sorts names by rank."""
    return rank(name), name


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """What a placement may know of a member."""

    __module__ = "eventproc"

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
    """The input of a placement: the same on every processor that reads the same records."""

    __module__ = "eventproc"

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


Order: TypeAlias = Callable[[str], Iterable[str]]
"""Returns the members that may have a resource, best first. It may be lazy."""

Backups: TypeAlias = Callable[[str], tuple[str, ...]]
"""Returns the members that should be ready to take a resource over, best first."""


class Placement(ABC):
    """A rule: how many resources each member gets, and which.

    It must be pure: the same answer for equal states, whatever the order of their mappings, on
    every machine. ``eventproc.testing.check_placement`` tests that and more. A subclass whose
    instances have settings is a frozen dataclass: ``name`` then tells them apart.
    """

    __module__ = "eventproc"

    is_sticky: ClassVar[bool] = True
    """Whether an owner keeps what it holds, up to its quota. Otherwise the plan depends on the
    members alone, and a resource returns to its first member as soon as that one is there."""

    admits_foreign: ClassVar[bool] = False
    """Whether processors of the Azure SDKs, which share evenly, may be members of the group."""

    needs_leader: ClassVar[bool] = False
    """Whether the members cannot all compute the same plan: then only ``Published`` may use it."""

    admits_standby: ClassVar[bool] = True
    """Whether a processor of a new deployment may wait for an old one's share."""

    uses_weights: ClassVar[bool] = True
    """Whether the plan depends on ``weight`` or ``capacity`` of members. If not, a config that sets
    one of them raises ``ConfigurationError``."""

    uses_ordinals: ClassVar[bool] = True
    """As ``uses_weights``, for ``ordinal``."""

    def quotas(self, state: GroupState) -> Mapping[str, int | None]:
        """Return how many resources each member may have; ``None``: no limit. Default: no limits.

        If the quotas together are less than the resources, some resources have no planned owner:
        their owners keep them, and free ones stay free. The processors report both.
        """
        return dict.fromkeys(state.members)

    def backups_of(self, state: GroupState, planned: Mapping[str, str]) -> Backups | None:  # noqa: ARG002
        """Return the function that names the backups of each resource, by its planned owner.

        ``None``, as by default: no resource has any.
        """
        return None

    @abstractmethod
    def order(self, state: GroupState) -> Order:
        """Return the function that orders the members for each resource.

        A member that it leaves out never gets the resource.
        """

    def check(self, me: MemberFacts) -> None:  # noqa: B027 - most placements need nothing
        """Check what a processor knows of itself, when it starts.

        Raises:
            ConfigurationError: the placement needs something that is missing.
        """

    @property
    def name(self) -> str:
        """The text that names this rule in member records: the class, and settings not default."""
        settings: list[str] = []
        if is_dataclass(self):
            settings = [
                f"{field.name}={_text(getattr(self, field.name))}"
                for field in fields(self)
                if getattr(self, field.name) != field.default
            ]
        where = public_name(type(self)).removeprefix("eventproc.")
        return ":".join([where, ",".join(settings)] if settings else [where])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
