"""The points at which a play may have a fault, and what each fault does.

A point is a request of which the group's safety depends: each conditional write, the first listing
after it of each kind, and the opening of a link to a partition. On virtual time with real
processors a play is the same each time until its first fault, so the number of a point, counted
from the beginning of the scenario, names it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from eventproc.testing._faults import Fate
from eventproc.testing._processes import Wire
from tests.simulation.nodes import CheckedNode

WRITES: Final = frozenset(
    {
        "claim_ownership",
        "announce_member",
        "withdraw_member",
        "update_checkpoint",
        "write_record",
    }
)
LISTINGS: Final = frozenset({"list_ownership", "list_members"})
OPENING: Final = "open_receiver"

SILENCE_S: Final = 2.0
"""How long the sender waits for an answer that does not come: more than a poll."""

PAST_LEASE: Final = 1.25
"""Leases for which a process is frozen, an answer is late, or a clock jumps."""


class FaultKind(Enum):
    """What happens at a point. The text is how a report tells it."""

    REFUSED = "the store was busy and refused it"
    LOST_BEFORE = "the request was lost"
    LOST_AFTER = "it was carried out, and the answer was lost"
    CARRIED_OUT_LATE = "the request arrived only after the lease"
    ANSWERED_LATE = "it was carried out, and the answer came only after the lease"
    KILLED_BEFORE = "the process was killed before it was sent"
    KILLED_AFTER = "it was carried out, and the process was killed"
    FROZEN = "it was carried out, and the process was frozen past its lease"
    JUMPED = "the process's clock jumped past its lease"


OF_LISTINGS: Final = (
    FaultKind.REFUSED,
    FaultKind.LOST_BEFORE,
    FaultKind.ANSWERED_LATE,
    FaultKind.KILLED_BEFORE,
    FaultKind.FROZEN,
    FaultKind.JUMPED,
)
"""A listing changes nothing, so it makes no difference whether it was carried out."""

OF_OPENINGS: Final = (
    FaultKind.REFUSED,
    FaultKind.KILLED_BEFORE,
    FaultKind.FROZEN,
    FaultKind.JUMPED,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at a point."""

    point: int
    kind: FaultKind

    def __str__(self) -> str:
        return f"{self.point}:{self.kind.name}"


@dataclass(frozen=True, slots=True)
class Point:
    """A request of a play at which a fault may be."""

    number: int
    at_s: float
    owner_id: str
    method: str

    def __str__(self) -> str:
        return f"point {self.number} at {self.at_s:.3f}, {self.owner_id}: {self.method}"

    @property
    def kinds(self) -> tuple[FaultKind, ...]:
        """The faults that differ here."""
        if self.method in LISTINGS:
            return OF_LISTINGS
        return OF_OPENINGS if self.method == OPENING else tuple(FaultKind)


class Injector:
    """Counts the points of a play, and injects the faults that were chosen for it."""

    def __init__(
        self,
        choose: Callable[[Point], FaultKind | None],
        *,
        lease_s: float,
        wire: Wire,
        note: Callable[[str, str], None],
    ) -> None:
        """*kind_at* returns the fault at a point; it is asked until the group is at rest again.

        *note* adds a line to the history: what happened, and to whom.
        """
        self.points: list[Point] = []
        self.is_counting = False
        """Whether the scenario has begun."""

        self.point_count_at_rest: int | None = None
        """How many points there were when the group was at rest again."""

        self.last_at_s = 0.0
        """When all faults are over."""

        self.hit: set[CheckedNode] = set()
        """The processors that had a fault."""

        self._choose = choose
        self._past_lease_s = PAST_LEASE * lease_s
        self._wire = wire
        self._note = note
        self._unlisted: set[tuple[CheckedNode, str]] = set()

    def rest(self) -> None:
        """The group is at rest again: points from now on have no fault."""
        self.point_count_at_rest = len(self.points)

    def watch(self, node: CheckedNode) -> None:
        """Count the requests of a processor from now on."""
        node.connection.fate = lambda method, fate: self._fate(node, method, fate)

    def opens(self, node: CheckedNode) -> bool:
        """A processor opens a link to a partition; return whether that is refused."""
        return self._at(node, OPENING) is FaultKind.REFUSED

    def _fate(self, node: CheckedNode, method: str, fate: Fate) -> Fate:
        if method in WRITES:
            self._unlisted |= {(node, listing) for listing in LISTINGS}
        elif (node, method) in self._unlisted:
            self._unlisted.remove((node, method))
        else:
            return fate
        kind = self._at(node, method)
        if kind is None:
            return fate
        late_s = self._past_lease_s
        changes: dict[FaultKind, dict[str, Any]] = {
            FaultKind.REFUSED: {"is_carried_out": False, "silence_s": 0.0},
            FaultKind.LOST_BEFORE: {"is_carried_out": False, "silence_s": SILENCE_S},
            FaultKind.LOST_AFTER: {"is_answered": False, "silence_s": SILENCE_S},
            FaultKind.CARRIED_OUT_LATE: {"way_there_s": late_s},
            FaultKind.ANSWERED_LATE: {"way_back_s": late_s},
            FaultKind.KILLED_BEFORE: {"is_carried_out": False},
        }
        return replace(fate, **changes.get(kind, {}))

    def _at(self, node: CheckedNode, method: str) -> FaultKind | None:
        """Count a point; return the fault that was chosen for it, of which the process suffers."""
        if not self.is_counting or node.process.is_paused:
            return None
        now_s = self._wire.loop.now_s
        point = Point(len(self.points), now_s, node.owner_id, method)
        self.points.append(point)
        kind = None if self.point_count_at_rest is not None else self._choose(point)
        if kind is None:
            return None
        self._note(f"FAULT at {method}: {kind.value}", node.owner_id)
        self.hit.add(node)
        process, late_s = node.process, self._past_lease_s
        lasts_s = late_s
        match kind:
            case FaultKind.KILLED_BEFORE | FaultKind.KILLED_AFTER:
                process.kill()
                lasts_s = 0.0
            case FaultKind.FROZEN:
                process.pause()
                self._wire.after(late_s, process.resume)
            case FaultKind.JUMPED:
                process.jump(late_s)
                lasts_s = 0.0
            case _:
                pass  # The request suffers, and not the process.
        self.last_at_s = max(self.last_at_s, now_s + lasts_s)
        return kind
