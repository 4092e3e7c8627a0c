"""How the demo looks, as lines and as a picture."""

import time
from typing import Final, TextIO

from rich.console import Group
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.live import Screen
from eventproc.cli.demo_spark.scene import PartitionScene, Scene
from eventproc.cli.demo_spark.weeks import AIRPORTS, Figures

COLOURS: Final = dict(zip(AIRPORTS, ("cyan", "magenta", "green"), strict=True))
HEIGHTS: Final = " ▁▂▃▄▅▆▇█"
BAR_WIDTH: Final = 40
LINE_EVERY_S: Final = 3.0


class Lines(Screen[Scene]):
    """A line at every change, and one every few seconds."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._begun_s = time.monotonic()
        self._headline = ""
        self._told_s = 0.0

    def tell(self, line: str) -> None:
        """Print it with the time since the beginning."""
        print(f"{time.monotonic() - self._begun_s:6.1f} s  {line}", file=self._output, flush=True)

    def show(self, scene: Scene) -> None:
        """Print what is new."""
        now_s = time.monotonic()
        if scene.headline != self._headline:
            self._headline, self._told_s = scene.headline, now_s
            self.tell(scene.headline)
        elif now_s - self._told_s >= LINE_EVERY_S:
            self._told_s = now_s
            executors = ", ".join(f"{row.pid} {row.fate}" for row in scene.executors)
            done = (
                f"committed {scene.committed:,} in {scene.batches} batches, in the aggregate "
                f"{scene.aggregated:,}"
                if scene.committed
                else "no batch is through yet, the first takes Spark longest"
            )
            self.tell(
                f"  published {scene.published:,} of {scene.total:,}, {done}; "
                f"executors: {executors or 'none yet'}"
            )


def draw(scene: Scene) -> Group:
    """Draw everything in 24 lines of 80 characters, with 8 partitions."""
    headline = Text.assemble(
        (f"{scene.elapsed_s:5.1f} s  ", "dim"), (scene.headline, "bold"), overflow="ellipsis"
    )
    numbers = Text(
        f"         published {scene.published:,} of {scene.total:,}   committed "
        f"{scene.committed:,} in {scene.batches} batches"
    )
    parts = (_partitions(scene), Text(), _weeks(scene), Text(), _executors(scene))
    return Group(headline, numbers, Text(), *parts)


def _partitions(scene: Scene) -> Table:
    """A bar is committed, waiting and still to come."""
    table = Table.grid(padding=(0, 1))
    scale = max(1, *(row.published for row in scene.partitions))
    if scene.published:
        scale = max(scale, round(scale * scene.total / scene.published))
    for row in scene.partitions:
        table.add_row(Text(f"  {row.partition_id:>3}", "dim"), _bar(row, scale), _lag(row))
    return table


def _bar(row: PartitionScene, scale: int) -> Text:
    committed = BAR_WIDTH * row.committed // scale
    waiting = max(row.published > row.committed, BAR_WIDTH * row.published // scale - committed)
    rest = max(0, BAR_WIDTH - committed - waiting)
    return Text.assemble(("█" * committed, "blue"), ("▒" * waiting, "blue"), ("·" * rest, "dim"))


def _lag(row: PartitionScene) -> Text:
    lag = row.published - row.committed
    return Text(f"{lag:>7,} waiting" if lag else "", "dim")


def _weeks(scene: Scene) -> Table:
    """A column for each week, as high as its flights."""
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
