"""The state of ``eventproc demo`` at one moment, for the screen and the report."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from eventproc.cli.demo.live import Progress
from eventproc.core.placement.even import even_plan, moves_minimum


class ChangeKind(StrEnum):
    """A kind of change in the group."""

    START = "start"
    JOIN = "join"
    KILL = "kill"
    FREEZE = "freeze"
    """A processor is suspended for longer than its leases last."""

    THAW = "thaw"
    """The frozen processor continues where it was suspended."""

    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change in the group, and how long the group took to balance."""

    kind: ChangeKind
    processors: str
    """Names, separated by commas."""

    began_at: datetime
    """When the demo began the change."""

    moves_minimum: int
    seconds_to_balance: float | None = None
    """Until the group was balanced for good; ``None`` if it is not yet balanced. For a start or a
    join, the time counts from when the first new processor has started, so that it does not include
    the start of Python."""

    moves: int | None = None
    """Partitions that changed their owner; ``None`` before the end of the demo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScene:
    """The state of one partition."""

    partition_id: str
    owner_id: str | None
    handled: int
    """Distinct handled events, by the journals."""

    published: int
    """Events in the hub when it was last asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorScene:
    """The state of one processor."""

    name: str
    pid: int
    fate: str
    """``starting``, ``running``, ``frozen``, ``killed``, ``leaving``, ``left``."""

    delivered: int
    """Events that were delivered to its handlers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(Progress):
    """The state of the demo."""

    handled: int
    partitions: tuple[PartitionScene, ...]
    processors: tuple[ProcessorScene, ...]
    changes: tuple[Change, ...]


def is_balanced(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> bool:
    """Whether live processors own all partitions, evenly and as the plan says."""
    owners = {p: o for p, o in owner_by_partition.items() if o is not None and o in live}
    if len(owners) < len(owner_by_partition) or not live:
        return False
    return even_plan(list(owners), owners, set(live)) == owners


def fewest_moves(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> int:
    """Return the fewest partitions that must change owners to balance the ``live`` processors."""
    counts = Counter(o for o in owner_by_partition.values() if o is not None and o in live)
    orphan_count = len(owner_by_partition) - counts.total()
    held = {owner_id: counts[owner_id] for owner_id in live}
    return orphan_count + moves_minimum(len(owner_by_partition), held)
