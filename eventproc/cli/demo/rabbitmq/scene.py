"""The state of ``eventproc demo-rabbitmq`` at one moment, for the screen and the report."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from eventproc.cli.demo.live import Progress
from eventproc.cli.demo.rabbitmq.api_server import STATEFUL_SET


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change, and how long the group took to follow it."""

    what: str
    seconds: float | None = None
    """Until each queue belonged to the pod that should have it; ``None`` while it does not."""

    moves: int = 0
    """How many queues got another owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueScene:
    """The state of one queue."""

    number: str
    owner_id: str | None
    handled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodScene:
    """The state of one pod."""

    name: str
    pid: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(Progress):
    """The state of the demo."""

    handled: int
    replicas: int
    queues: tuple[QueueScene, ...]
    pods: tuple[PodScene, ...]
    steps: tuple[Step, ...]


def is_settled(owners: Mapping[str, str | None], replicas: int, there: Collection[str]) -> bool:
    """Whether each queue belongs to the pod of its block, or if that is away, to another one."""
    count = len(owners)
    size, extra = divmod(count, replicas)
    numbers = [n for n in range(replicas) for _ in range(size + (n < extra))]
    wanted = {str(q): f"{STATEFUL_SET}-{n}" for q, n in enumerate(numbers)}
    return all(
        owners[q] == name if name in there else owners[q] in there for q, name in wanted.items()
    )
