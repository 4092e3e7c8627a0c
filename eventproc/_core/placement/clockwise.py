"""An order of members: clockwise on a circle of points, from where a resource's name lies."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

from eventproc._core.placement.placement import rank


class Circle:
    """Points on a circle. Each point belongs to a member; a member may have several."""

    __module__ = "eventproc.placements"

    def __init__(self, points: Iterable[tuple[int, str]]) -> None:
        """Sort the points, which are given with their members; of equal points the first counts."""
        ordered = sorted(points, key=itemgetter(0))
        self.points = [point for point, _ in ordered]
        self.members = [member for _, member in ordered]

    @classmethod
    def of(cls, members: Iterable[str]) -> "Circle":
        """Return a circle with one point for each member, at its rank."""
        return cls((rank(member), member) for member in sorted(members))

    def index(self, name: str) -> int:
        """Return the index of the first point at or after a name's rank."""
        return bisect_left(self.points, rank(name)) % len(self.points)


@dataclass(frozen=True, slots=True)
class Clockwise:
    """Orders the members of a circle, each once, as they follow a resource.

    ``plan`` knows this order: every member may have every resource, and it does not walk over full
    members again for each resource.
    """

    __module__ = "eventproc.placements"

    circle: Circle

    def __call__(self, resource: str) -> Iterator[str]:
        """Return the members, best first."""
        members = self.circle.members
        first = self.circle.index(resource) if members else 0
        seen = set()
        for index in range(first - len(members), first):  # Negative ones count from the end.
            member = members[index]
            if member not in seen:
                seen.add(member)
                yield member


class Places:
    """Finds the next member on a circle that still has a place, although most members may be full.

    ``following`` points from a point whose member is full to the next point. Each walk shortens
    these paths, so that full members are not walked over again for each resource.
    """

    def __init__(self, circle: Circle, left: Mapping[str, int | None]) -> None:
        """Walk on *circle*. *left* says how many places each member has (``None``: no limit).

        The caller lowers these numbers; a full member never gets a place again.
        """
        self._circle = circle
        self._left = left
        self._following = list(range(len(circle.points)))
        self._open_count = len(circle.points)

    def next(self, resource: str) -> str | None:
        """Return the first member clockwise that has a place; ``None`` if no member has."""
        index = self._circle.index(resource) if self._open_count else 0
        while self._open_count:
            index = self._open_at(index)
            member = self._circle.members[index]
            if self._left.get(member, 0) != 0:
                return member
            self._open_count -= 1
            self._following[index] = (index + 1) % len(self._following)
        return None

    def _open_at(self, index: int) -> int:
        passed = []
        while self._following[index] != index:
            passed.append(index)
            index = self._following[index]
        for other in passed:
            self._following[other] = index
        return index
