"""How ``eventproc demo-rabbitmq`` is shown: as lines of text and as a picture."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.drawing import bar, bar_scale, heading, shares, summary
from eventproc.cli.demo.live import TextScreen
from eventproc.cli.demo.rabbitmq.scene import Scene

COLOURS: Final = ("cyan", "magenta", "green", "yellow")
"""Of pods. Red is reserved for those that were killed or frozen."""

BAR_WIDTH: Final = 30


class Lines(TextScreen[Scene]):
    """Text that tells each step, with the time until each queue was where it should be."""

    interval_s = 5.0

    def _news(self, scene: Scene) -> Iterable[tuple[int, str]]:
        for index, step in enumerate(scene.steps):
            if step.seconds is not None:
                took = f"settled after {step.seconds:.1f} s, {step.moves} moves"
                yield index, f"{took}: {_shares(scene)}"

    def _summary(self, scene: Scene) -> str:
        return summary(scene, scene.handled, _shares(scene))


def _shares(scene: Scene) -> str:
    return shares(row.owner_id for row in scene.queues)


def draw(scene: Scene) -> Group:
    """Draw a scene."""
    lag = scene.published - scene.handled
    numbers = f"handled {scene.handled:,}   lag {lag:,}   replicas {scene.replicas}"
    return Group(*heading(scene, numbers), Text(), _queues(scene), Text(), _pods(scene))


def _colour(owner_id: str | None) -> str:
    if owner_id is None:
        return "white"
    return COLOURS[int(owner_id.rpartition("-")[2]) % len(COLOURS)]


def _queues(scene: Scene) -> Table:
    table = Table.grid(padding=(0, 1))
    scale = bar_scale(scene, [row.handled for row in scene.queues])
    lost = {pod.name for pod in scene.pods if pod.state in {"killed", "frozen"}}
    for row in scene.queues:
        colour = "red" if row.owner_id in lost else _colour(row.owner_id)
        table.add_row(
            Text(f"  P{row.number:>2}", "dim"),
            Text(f"{row.owner_id or '-':<12}", f"bold {colour}"),
            bar(row.handled, row.handled, scale=scale, width=BAR_WIDTH, colour=colour),
            Text(f"{row.handled:>8,}"),
        )
    return table


def _pods(scene: Scene) -> Table:
    table = Table.grid(padding=(0, 2))
    counts = Counter(row.owner_id for row in scene.queues)
    for pod in scene.pods:
        is_lost = pod.state in {"killed", "frozen"}
        table.add_row(
            Text(f"  {pod.name}", "bold red" if is_lost else f"bold {_colour(pod.name)}"),
            Text(f"process {pod.pid}", "dim"),
            Text(pod.state, "red" if is_lost else ""),
            Text(f"{counts[pod.name]:>2} queues"),
        )
    return table
