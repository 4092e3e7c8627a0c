"""``Ring``: a hash ring with the same limit of resources for each member."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice, takewhile
from math import ceil
from struct import unpack
from typing import Annotated, ClassVar, Final

from eventproc._base.settings import Wanted, Within, check_settings
from eventproc._core.placement.clockwise import Circle, Clockwise
from eventproc._core.placement.placement import Backups, GroupState, Order, Placement, rank

POINTS_PER_MEMBER: Final = 32
"""So many points even out the arcs between them: with one point, some members would get several
times the share of others."""

POINTS_PER_DIGEST: Final = 8

CIRCLE_SIZE: Final = 1 << 64


@dataclass(frozen=True)
class Ring(Placement):
    """Gives each resource to the member whose point on a hash ring follows it.

    Who owns a resource depends on the names of the members alone, so it returns to the same member
    whenever that one is there: caches stay warm. A full member is passed over ("Consistent Hashing
    with Bounded Loads", Mirrokni and others, 2016). The price is more moves than ``Even`` makes.
    """

    __module__ = "eventproc"

    bound: Annotated[float, Within(least=1.0), Wanted("a number of 1 or more")] = 1.0
    """The most resources of one member: this many times the mean, rounded up. With 1.0 they are
    spread best; the higher it is, the fewer resources move when members come and go."""

    backups: Annotated[int, Within(least=0), Wanted("a whole number, 0 or more")] = 0
    """How many members are the backups of each resource: the next ones on the ring after its owner.
    They prepare what they may have to take over, if the handlers define ``prepare``."""

    literal: bool = False
    """Whether to split the circle into equal arcs, one for each member in sorted order, without a
    bound, as in "Hashrings to the rescue" by the makers of Knock."""

    is_sticky: ClassVar[bool] = False
    admits_standby: ClassVar[bool] = False
    uses_weights: ClassVar[bool] = False
    uses_ordinals: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a bound below one, and a negative number of backups."""
        check_settings(self)

    def quotas(self, state: GroupState) -> Mapping[str, int | None]:
        """Return the same bound for all members; no limit with ``literal``."""
        if self.literal or not state.members:
            return super().quotas(state)
        most = ceil(self.bound * len(state.resources) / len(state.members))
        return dict.fromkeys(state.members, most)

    def order(self, state: GroupState) -> Order:
        """Return the members clockwise from the resource; if literal, from its arc's owner."""
        names = tuple(sorted(state.members))
        if not self.literal:
            return Clockwise(_circle(names))

        def order(resource: str) -> Iterator[str]:
            first = rank(resource) * len(names) // CIRCLE_SIZE
            return chain(islice(names, first, None), islice(names, first))

        return order

    def backups_of(self, state: GroupState, planned: Mapping[str, str]) -> Backups | None:
        """Return the function that names the backups of each resource, best first.

        They are the members that follow the owner on the ring, so the first one is the next owner
        if the owner ends and the bound does not decide otherwise. A small group has fewer.
        """
        if not self.backups:
            return None
        order = self.order(state)

        def backups(resource: str) -> tuple[str, ...]:
            members = iter(order(resource))
            owner_id = planned.get(resource)
            full = list(takewhile(lambda member: member != owner_id, members))
            return tuple(islice(chain(members, full), self.backups))

        return backups


@lru_cache(maxsize=8)
def _circle(names: tuple[str, ...]) -> Circle:
    """Return the circle of these members; each poll needs it, and it costs most of the plan."""
    return Circle((point, name) for name in names for point in _points(name))


def _points(name: str) -> Iterator[int]:
    """Return a member's points. Each digest gives eight, because hashing takes most of the time."""
    for number in range(POINTS_PER_MEMBER // POINTS_PER_DIGEST):
        digest = blake2b(f"{name}#{number}".encode(), digest_size=8 * POINTS_PER_DIGEST).digest()
        yield from unpack(f">{POINTS_PER_DIGEST}Q", digest)
