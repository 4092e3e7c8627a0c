"""How ``eventproc demo`` is shown: as lines of text and as a picture."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.drawing import bar, bar_scale, heading, shares, summary
from eventproc.cli.demo.live import TextScreen
from eventproc.cli.demo.processors.scene import Change, PartitionScene, Scene

COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue")
"""Of processors. Red is reserved for those that were killed or frozen."""

LOST: Final = frozenset({"killed", "frozen"})

BAR_WIDTH: Final = 22


def colour_of(owner_id: str | None) -> str:
    """Return the colour of a processor."""
    return "white" if owner_id is None else COLOURS[(ord(owner_id[0]) - ord("A")) % len(COLOURS)]


class Lines(TextScreen[Scene]):
    """Text that tells each change of the group, with the time until it was balanced."""

    interval_s = 5.0

    def _news(self, scene: Scene) -> Iterable[tuple[int, str]]:
        for index, change in enumerate(scene.changes):
            if change.seconds_to_balance is not None:
                yield index, f"balanced after {change.seconds_to_balance:.1f} s: {_shares(scene)}"

    def _summary(self, scene: Scene) -> str:
        return summary(scene, scene.handled, _shares(scene))


def _shares(scene: Scene) -> str:
    return shares(row.owner_id for row in scene.partitions)


def draw(scene: Scene) -> Group:
    """Draw a scene; with 16 partitions, in 24 lines of 80 characters."""
    lag = scene.published - scene.handled
    return Group(
        *heading(scene, f"handled {scene.handled:,}   lag {lag:,}"),
        Text(),
        _partitions(scene),
        Text(),
        _processors(scene),
        _changes(scene),
    )


def _partitions(scene: Scene) -> Table:
    """Draw two columns of partitions, each with a bar."""
    table = Table.grid(padding=(0, 1))
    scale = bar_scale(scene, [row.published for row in scene.partitions])
    dead = {row.name for row in scene.processors if row.fate in LOST}
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
    return [
        Text(f"{row.partition_id:>3}", "dim"),
        Text(row.owner_id or "-", f"bold {colour}"),
        bar(row.handled, row.published, scale=scale, width=BAR_WIDTH, colour=colour),
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
            Text(row.fate, "" if is_there else "red" if row.fate in LOST else "dim"),
            Text(f"{counts[row.name]:>2} partitions"),
            Text(f"{row.delivered:>9,} events"),
        )
    return table


def _changes(scene: Scene) -> Text:
    return Text("  " + "   ".join(_change(change) for change in scene.changes), overflow="ellipsis")


def _change(change: Change) -> str:
    took = change.seconds_to_balance
    return f"{change.kind} {change.processors}: " + ("..." if took is None else f"{took:.1f} s")
