"""What the screens and the reports of both demos draw alike."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eventproc.cli.demo.live import Progress

TEXT_COLUMNS: Final = frozenset({"which means"})
"""Columns of a report that are aligned to the left, besides the first one."""


def heading(scene: Progress, numbers: str) -> tuple[Text, Text]:
    """Return the first two lines of a picture: time and headline, then the demo's numbers."""
    return (
        Text.assemble(
            (f"{scene.elapsed_s:5.1f} s  ", "dim"), (scene.headline, "bold"), overflow="ellipsis"
        ),
        Text(f"         published {scene.published:,} of {scene.total:,}   {numbers}"),
    )


def shares(owner_ids: Iterable[str | None]) -> str:
    """Return how many partitions each owner has: ``A 6, B 5, C 5``."""
    counts = Counter(owner_id or "unowned" for owner_id in owner_ids)
    return ", ".join(f"{owner_id} {count}" for owner_id, count in sorted(counts.items()))


def summary(scene: Progress, handled: int, shared: str) -> str:
    """Return a line of text with the numbers of a group, and its ``shares``."""
    return (
        f"published {scene.published:,} of {scene.total:,}, handled {handled:,}, "
        f"lag {scene.published - handled:,}; {shared}"
    )


def bar_scale(scene: Progress, published: Iterable[int]) -> int:
    """Return the events of a full bar: about what the largest partition has in the end."""
    scale = max(1, *published)
    return max(scale, round(scale * scene.total / scene.published)) if scene.published else scale


def bar(done: int, published: int, *, scale: int, width: int, colour: str) -> Text:
    """Return a partition's bar: events that are done, waiting and still to be published."""
    full = width * done // scale
    waiting = max(published > done, width * published // scale - full)
    rest = max(0, width - full - waiting)
    return Text.assemble(("█" * full, colour), ("▒" * waiting, colour), ("·" * rest, "dim"))


def print_title(console: Console, title: str) -> None:
    """Print the title of a table, below an empty line."""
    console.print()
    console.print(Text(title, "bold"))


def report_table(*columns: str) -> Table:
    """Return an empty table of a report: text to the left, numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, name in enumerate(columns):
        is_text = index == 0 or name in TEXT_COLUMNS
        table.add_column(name, justify="left" if is_text else "right")
    return table


def add_counts(table: Table, rows: Iterable[tuple[str, int, str]]) -> None:
    """Add rows of name, count and meaning; the count of ``lost`` is green if it is 0, else red."""
    for name, count, meaning in rows:
        style = ("red" if count else "green") if name == "lost" else ""
        table.add_row(name, Text(f"{count:,}", style), meaning)


def add_problems(table: Table, problems: Iterable[str]) -> None:
    """Add a row for each problem of a demo."""
    for problem in problems:
        table.add_row("problem", Text("!", "red"), problem)
