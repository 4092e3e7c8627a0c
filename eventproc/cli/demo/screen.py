"""How the demo looks, as lines and as a picture."""

import time
from collections import Counter
from collections.abc import Collection
from typing import Final, TextIO

from rich.console import Group
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.live import Screen
from eventproc.cli.demo.scene import Change, PartitionScene, Scene

COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue")
"""Red is for those who are away without having left."""

AWAY: Final = frozenset({"killed", "frozen"})

BAR_WIDTH: Final = 22
LINE_EVERY_S: Final = 5.0


def colour_of(owner_id: str | None) -> str:
    """Each processor has its own."""
    return "white" if owner_id is None else COLOURS[(ord(owner_id[0]) - ord("A")) % len(COLOURS)]


class Lines(Screen[Scene]):
    """A line at every change, and one every five seconds."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._begun_s = time.monotonic()
        self._headline = ""
        self._balanced: set[int] = set()
        self._told_s = 0.0

    def tell(self, line: str) -> None:
        """Print it with the time since the beginning."""
        self._print(time.monotonic() - self._begun_s, line)

    def _print(self, elapsed_s: float, line: str) -> None:
        print(f"{elapsed_s:6.1f} s  {line}", file=self._output, flush=True)

    def show(self, scene: Scene) -> None:
        """Print what is new."""
        if scene.headline != self._headline:
            self._headline = scene.headline
            self._told_s = scene.elapsed_s
            self._print(scene.elapsed_s, scene.headline)
        for index, change in enumerate(scene.changes):
            if change.seconds_to_balance is not None and index not in self._balanced:
                self._balanced.add(index)
                self._print(
                    scene.elapsed_s,
                    f"  balanced after {change.seconds_to_balance:.1f} s: {shares(scene)}",
                )
        if scene.elapsed_s - self._told_s >= LINE_EVERY_S:
            self._told_s = scene.elapsed_s
            lag = scene.published - scene.handled
            self._print(
                scene.elapsed_s,
                f"  published {scene.published:,} of {scene.total:,}, handled {scene.handled:,}, "
                f"lag {lag:,}; {shares(scene)}",
            )


def shares(scene: Scene) -> str:
    """Who owns how many partitions: ``A 6, B 5, C 5``."""
    counts = Counter(row.owner_id or "nobody" for row in scene.partitions)
    return ", ".join(f"{owner_id} {count}" for owner_id, count in sorted(counts.items()))


def draw(scene: Scene) -> Group:
    """Draw everything in 24 lines of 80 characters, with 16 partitions."""
    headline = Text.assemble(
        (f"{scene.elapsed_s:5.1f} s  ", "dim"), (scene.headline, "bold"), overflow="ellipsis"
    )
    numbers = Text(
        f"         published {scene.published:,} of {scene.total:,}   handled {scene.handled:,}"
        f"   lag {scene.published - scene.handled:,}"
    )
    return Group(
        headline, numbers, Text(), _partitions(scene), Text(), _processors(scene), _changes(scene)
    )


def _partitions(scene: Scene) -> Table:
    """Two columns of partitions; a bar is handled, waiting and still to come."""
    table = Table.grid(padding=(0, 1))
    scale = max(1, *(row.published for row in scene.partitions))
    if scene.published:
        scale = max(scale, round(scale * scene.total / scene.published))
    dead = {row.name for row in scene.processors if row.fate in AWAY}
    half = (len(scene.partitions) + 1) // 2
    for left, right in zip(scene.partitions[:half], range(half, 2 * half), strict=True):
        cells = _cells(left, scale, dead)
        if right < len(scene.partitions):
            cells += [Text("   "), *_cells(scene.partitions[right], scale, dead)]
        table.add_row(*cells)
    return table


def _cells(row: PartitionScene, scale: int, dead: Collection[str]) -> list[Text]:
    colour = "red" if row.owner_id in dead else colour_of(row.owner_id)
    lag = row.published - row.handled
    handled = BAR_WIDTH * row.handled // scale
    waiting = max(lag > 0, BAR_WIDTH * row.published // scale - handled)
    bar = Text.assemble(
        ("█" * handled, colour),
        ("▒" * waiting, colour),
        ("·" * max(0, BAR_WIDTH - handled - waiting), "dim"),
    )
    return [
        Text(f"{row.partition_id:>3}", "dim"),
        Text(row.owner_id or "-", f"bold {colour}"),
        bar,
        Text(f"{lag:>6,}" if lag else "     0", "dim" if lag == 0 else ""),
    ]


def _processors(scene: Scene) -> Table:
    table = Table.grid(padding=(0, 2))
    counts = Counter(row.owner_id for row in scene.partitions)
    for row in scene.processors:
        is_there = row.fate in {"running", "starting", "leaving"}
        table.add_row(
            Text(f"  {row.name}", f"bold {colour_of(row.name)}" if is_there else "dim strike"),
            Text(f"process {row.pid}", "dim"),
            Text(row.fate, "" if is_there else "red" if row.fate in AWAY else "dim"),
            Text(f"{counts[row.name]:>2} partitions"),
            Text(f"{row.delivered:>9,} events"),
        )
    return table


def _changes(scene: Scene) -> Text:
    return Text("  " + "   ".join(_change(change) for change in scene.changes), overflow="ellipsis")


def _change(change: Change) -> str:
    took = change.seconds_to_balance
    return f"{change.kind} {change.who}: " + ("..." if took is None else f"{took:.1f} s")
