"""What the demo knows at one moment: the values that the screen draws and the report is made of."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from eventproc.core.plan import moves_minimum, plan


class ChangeKind(StrEnum):
    """What happens to the group."""

    START = "start"
    JOIN = "join"
    KILL = "kill"
    FREEZE = "freeze"
    """It stops in the middle of whatever it does, and does not know it."""

    THAW = "thaw"
    """The frozen one goes on where it was, believing that nothing happened."""

    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that happened to the group, and how it took it."""

    kind: ChangeKind
    who: str
    began_at: datetime
    """When it was done to the group."""

    moves_minimum: int
    seconds_to_balance: float | None = None
    """Until the group was balanced, to stay so. ``None``: not yet, or never. For a start or a join
    from when the group sees the first of the processes: how long Python takes to load is not what
    is measured."""

    moves: int | None = None
    """Partitions that got another server; known at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScene:
    """One partition now."""

    partition_id: str
    owner_id: str | None
    handled: int
    """Distinct events, from the journals."""

    published: int
    """As the hub said when it was last asked."""

    checkpointed: int
    """Events that the stored checkpoint covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorScene:
    """One process now."""

    name: str
    pid: int
    fate: str
    """``starting``, ``running``, ``frozen``, ``killed``, ``leaving``, ``left``."""

    delivered: int
    """Events that its handlers were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything now."""

    elapsed_s: float
    headline: str
    total: int
    published: int
    handled: int
    partitions: tuple[PartitionScene, ...]
    processors: tuple[ProcessorScene, ...]
    changes: tuple[Change, ...]


def is_balanced(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> bool:
    """Whether living processors own everything, nobody two more than another, as planned."""
    owners = {p: o for p, o in owner_by_partition.items() if o is not None and o in live}
    if len(owners) < len(owner_by_partition) or not live:
        return False
    counts = Counter(owners.values())
    if max(counts[o] for o in live) - min(counts[o] for o in live) > 1:
        return False
    return plan(list(owners), owners, set(live)) == owners


def fewest_moves(owner_by_partition: Mapping[str, str | None], live: Collection[str]) -> int:
    """The fewest partitions that must get another server to balance the ``live`` ones."""
    counts = Counter(o for o in owner_by_partition.values() if o is not None and o in live)
    orphan_count = len(owner_by_partition) - counts.total()
    held = {owner_id: counts[owner_id] for owner_id in live}
    return orphan_count + moves_minimum(len(owner_by_partition), held)
