"""How ``eventproc demo-spark`` is shown: as lines of text and as a picture."""

from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.drawing import bar, bar_scale, heading
from eventproc.cli.demo.live import TextScreen
from eventproc.cli.demo.spark.scene import PartitionScene, Scene
from eventproc.cli.demo.spark.weeks import AIRPORTS, Figures

COLOURS: Final = dict(zip(AIRPORTS, ("cyan", "magenta", "green"), strict=True))
HEIGHTS: Final = " ▁▂▃▄▅▆▇█"
BAR_WIDTH: Final = 40


class Lines(TextScreen[Scene]):
    """Text that tells each step of the demo."""

    interval_s = 3.0

    def _summary(self, scene: Scene) -> str:
        executors = ", ".join(f"{row.pid} {row.fate}" for row in scene.executors)
        done = (
            f"committed {scene.committed:,} in {scene.batches} batches, in the aggregate "
            f"{scene.aggregated:,}"
            if scene.committed
            else "no batch is committed yet: the first one takes Spark the longest"
        )
        return (
            f"published {scene.published:,} of {scene.total:,}, {done}; "
            f"executors: {executors or 'none yet'}"
        )


def draw(scene: Scene) -> Group:
    """Draw a scene; with 8 partitions, in 24 lines of 80 characters."""
    numbers = f"committed {scene.committed:,} in {scene.batches} batches"
    parts = (_partitions(scene), Text(), _weeks(scene), Text(), _executors(scene))
    return Group(*heading(scene, numbers), Text(), *parts)


def _partitions(scene: Scene) -> Table:
    """Draw the partitions, each with a bar."""
    table = Table.grid(padding=(0, 1))
    scale = bar_scale(scene, [row.published for row in scene.partitions])
    for row in scene.partitions:
        filled = bar(row.committed, row.published, scale=scale, width=BAR_WIDTH, colour="blue")
        table.add_row(Text(f"  {row.partition_id:>3}", "dim"), filled, _lag(row))
    return table


def _lag(row: PartitionScene) -> Text:
    lag = row.published - row.committed
    return Text(f"{lag:>7,} waiting" if lag else "", "dim")


def _weeks(scene: Scene) -> Table:
    """Draw a column for each week, as high as its number of flights."""
    table = Table.grid(padding=(0, 1))
    most = max((figures.flights for figures in scene.weeks.values()), default=1)
    for airport in AIRPORTS:
        found = [scene.weeks.get((week, airport), Figures()) for week in scene.week_names]
        columns = "".join(HEIGHTS[-(-(len(HEIGHTS) - 1) * one.flights // most)] for one in found)
        flights, miles = (sum(one[index] for one in found) for index in (0, 1))
        table.add_row(
            Text(f"  {airport}", f"bold {COLOURS[airport]}"),
            Text(columns, COLOURS[airport]),
            Text(f"{flights:>8,} flights {miles:>12,} miles"),
        )
    return table


def _executors(scene: Scene) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in scene.executors:
        is_there = row.fate == "running"
        table.add_row(
            Text("  executor", "" if is_there else "dim"),
            Text(f"process {row.pid}", "dim" if is_there else "dim strike"),
            Text(row.fate, "" if is_there else "red"),
        )
    return table
