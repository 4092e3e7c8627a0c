"""``ByLoad``: shares resources by the load that their owners measure, with few moves.

Rule 1: while no load is known, and whenever equal counts share the load well enough, the plan is
that of ``Even``. So with an even load it moves nothing that ``Even`` would not.
Rule 2: while members and resources stay the same, resources move only if the load of the busiest
member is more than ``dead_band`` above the mean, or above that of the heaviest resource if that is
more. Then they move until it is at most half of ``dead_band`` above.
Rule 3: after such moves there are none for ``COOL_DOWN``, so that the new owners can measure; and
there are at most ``moves_per_hour`` for each member.
Rule 4: when members or resources come and go, free resources go to the members with the least load,
and new members get their part at once, without regard to rule 3.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from eventproc._core.placement.even import Even
from eventproc._core.placement.loads import MEASURES, Loads
from eventproc._core.placement.placement import GroupState, Order, Placement, by_rank
from eventproc._core.placement.plan import plan
from eventproc.errors import ConfigurationError

COOL_DOWN: Final = timedelta(minutes=6)
"""The least time between moves because of load: the half-life in ``_group/load_meter.py``."""

HOUR: Final = timedelta(hours=1)

KNOWN_MIN: Final = 0.9
"""The part of the resources that must have been measured: owners report one after the other."""

EVEN_MAX: Final = 1.2
"""The heaviest resource, in units of the lightest, with which a load still counts as even."""

ROUNDING: Final = 1e-9
"""Sums of equal loads may differ by this part."""

LEAST_WEIGHT: Final = 0.01
"""The least load of a resource, in units of the mean: one without load may have some later."""

LEAST_OF_NEW: Final = 0.5
"""The part of the mean load that each member gets at least when members come and go."""


@dataclass(frozen=True)
class ByLoad(Placement):
    """Shares resources by their load. Only inside ``Published``."""

    __module__ = "eventproc"

    by: str = "busy"
    """What is measured: ``busy`` (the share of time in calls of the handler), ``events`` or
    ``bytes`` (handled in a second)."""

    dead_band: float = 0.15
    """How far the busiest member may be above its share before resources move."""

    moves_per_hour: int = 2
    """How many resources may move in an hour because of load, for each member of the group."""

    needs_leader: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = False
    uses_ordinals: ClassVar[bool] = False
    is_sticky: ClassVar[bool] = False
    """For ``plan``: the order names the planned member alone."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigurationError: one has no meaning.
        """
        if self.by not in MEASURES:
            raise ConfigurationError(f"by is {self.by!r}: use one of {', '.join(MEASURES)}")
        if isinstance(self.dead_band, bool) or not 0 < float(self.dead_band) < float("inf"):
            raise ConfigurationError(f"dead_band is {self.dead_band!r}: it must be above 0")
        if type(self.moves_per_hour) is not int or self.moves_per_hour < 1:
            raise ConfigurationError(
                f"moves_per_hour is {self.moves_per_hour!r}: it must be a whole number above 0"
            )

    def order(self, state: GroupState) -> Order:
        """Return the planned member of each resource, and no other."""
        planned = self.assignment(state)

        def order(resource: str) -> Iterable[str]:
            owner = planned.get(resource)
            return () if owner is None else (owner,)

        return order

    def assignment(self, state: GroupState) -> dict[str, str]:
        """Return the planned owner of each resource."""
        even = plan(state, Even())
        loads = state.loads or Loads()
        if not state.members or not any(loads.by_resource.get(r) for r in state.resources):
            return even
        shares = Shares.of(state, loads.by_resource)
        is_changing = is_structural(state)
        is_well = shares.is_even_load or shares.after(even).excess <= 1 + self.dead_band
        if is_changing and is_well:
            return even
        if is_changing:
            shares.fill()
        most = self._moves_left(loads, len(state.members))
        enough = 1 + self.dead_band / 2
        if is_changing:
            shares.even_out(enough, least=LEAST_OF_NEW)
        elif is_known(state, loads) and shares.excess > 1 + self.dead_band:
            shares.even_out(enough, most=most)
        return shares.owner_by_resource

    def _moves_left(self, loads: Loads, member_count: int) -> int:
        """Return how many resources may move now because of load."""
        cool_ms, hour_ms = (int(span / timedelta(milliseconds=1)) for span in (COOL_DOWN, HOUR))
        recent = [at_ms for at_ms in loads.moved_ms if loads.now_ms - at_ms < hour_ms]
        if recent and loads.now_ms - max(recent) < cool_ms:
            return 0
        return max(self.moves_per_hour * member_count - len(recent), 0)


def is_structural(state: GroupState) -> bool:
    """Whether members or resources came or went: a resource has no owner, or a member is idle."""
    held = state.held_count_by_member
    is_free = sum(held.values()) < len(state.resources)
    is_idle = not all(held.values()) and any(count > 1 for count in held.values())
    return is_free or is_idle


def is_known(state: GroupState, loads: Loads) -> bool:
    """Whether enough resources were measured for the plan to depend on their loads."""
    known_count = sum(r in loads.by_resource for r in state.resources)
    return known_count >= KNOWN_MIN * len(state.resources)


class Shares:
    """A plan that is being computed, with the load of each member."""

    def __init__(self, owner_by_resource: dict[str, str], weights: dict[str, float]) -> None:
        self.owner_by_resource = owner_by_resource
        self.weights = weights
        self.held: dict[str, list[str]] = {}
        self.load_by_member: dict[str, float] = {}
        self._moved: set[str] = set()

    @classmethod
    def of(cls, state: GroupState, load_by_resource: Mapping[str, float]) -> "Shares":
        """Return what the members own now. A resource that was not measured counts as the mean."""
        known = [load_by_resource[r] for r in state.resources if r in load_by_resource]
        mean = sum(known) / len(known)
        least = mean * LEAST_WEIGHT
        weights = {r: max(load_by_resource.get(r, mean), least) for r in state.resources}
        owned = {
            r: owner
            for r in state.resources
            if (owner := state.owner_by_resource.get(r)) in state.members and owner is not None
        }
        shares = cls(owned, weights)
        shares._count(state.members)
        return shares

    def after(self, owner_by_resource: Mapping[str, str]) -> "Shares":
        """Return the shares of another plan."""
        other = Shares(dict(owner_by_resource), self.weights)
        other._count(self.held)
        return other

    def _count(self, members: Iterable[str]) -> None:
        self.held = {member: [] for member in members}
        for resource, owner in self.owner_by_resource.items():
            self.held[owner].append(resource)
        self.load_by_member = {
            member: sum(self.weights[r] for r in held) for member, held in self.held.items()
        }

    @property
    def is_even_load(self) -> bool:
        """Whether all resources have nearly the same load."""
        return max(self.weights.values()) <= EVEN_MAX * min(self.weights.values())

    @property
    def excess(self) -> float:
        """The load of the busiest member, in units of the least that it can be."""
        total = sum(self.weights.values())
        least = max(total / len(self.held), *self.weights.values())
        return max(self.load_by_member.values()) / least if least else 1.0

    def fill(self) -> None:
        """Give the resources without an owner to the members with the least load."""
        free = self.weights.keys() - self.owner_by_resource.keys()
        for resource in sorted(free, key=lambda r: (-self.weights[r], by_rank(r))):
            self._give(resource, self._least())

    def even_out(self, enough: float, *, least: float = 0.0, most: int | None = None) -> None:
        """Move resources from the busiest member that has several to the least busy member.

        It stops when ``excess`` is at most *enough* and each member has the *least* part of the
        mean, when *most* have moved, or when no move helps. Each resource moves at most once.
        """
        least_load = least * sum(self.weights.values()) / len(self.held)
        while most is None or len(self._moved) < most:
            several = [member for member, held in self.held.items() if len(held) > 1]
            busiest = max(several, key=lambda m: (self.load_by_member[m], by_rank(m)), default=None)
            idlest = self._least()
            is_enough = self.excess <= enough and self.load_by_member[idlest] >= least_load
            if busiest is None or is_enough:
                return
            gap = self.load_by_member[busiest] - self.load_by_member[idlest]
            most_fitting = gap * (1 - ROUNDING)
            fitting = [
                r
                for r in self.held[busiest]
                if self.weights[r] < most_fitting and r not in self._moved
            ]
            if not fitting:
                return
            best = min(fitting, key=lambda r: (abs(gap / 2 - self.weights[r]), by_rank(r)))
            self.held[busiest].remove(best)
            self.load_by_member[busiest] -= self.weights[best]
            self._moved.add(best)
            self._give(best, idlest)

    def _least(self) -> str:
        return min(self.held, key=lambda m: (self.load_by_member[m], len(self.held[m]), by_rank(m)))

    def _give(self, resource: str, member: str) -> None:
        self.owner_by_resource[resource] = member
        self.held[member].append(resource)
        self.load_by_member[member] += self.weights[resource]
