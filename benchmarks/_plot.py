"""Draw the comparisons: how many times better or worse eventproc is."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks._rows import cell_text
from benchmarks._summary import Comparison

BETTER: Final = (0.20, 0.52, 0.42)
WORSE: Final = (0.82, 0.42, 0.20)
HEADLINES: Final = re.compile(r"_per_s$|cpu_|latency")
"""Of benchmarks with many figures, those to draw; of whole groups all are."""

BEYOND: Final = 100.0
"""The length of a paler bar, for an infinite ratio: ours is 0, and theirs is not."""


def draw(found: Sequence[Comparison], target: Path, caption: str) -> None:
    """Draw a bar for each of the main comparisons."""
    found = [
        one
        for one in found
        if (one.benchmark == "group" or HEADLINES.search(one.figure)) and (one.ours or one.other)
    ]
    figure = Figure(figsize=(10, 1.2 + 0.34 * len(found)), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    lengths = [length(one) for one in found]
    places = range(len(found))
    colours = [
        (BETTER if value >= 1 else WORSE) + ((1.0,) if one.times_better is not None else (0.5,))
        for one, value in zip(found, lengths, strict=True)
    ]
    axes.barh(places, [max(value, 1) - min(value, 1) for value in lengths],
              left=[min(value, 1) for value in lengths], color=colours, height=0.62)  # fmt: skip
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    for place, (one, value) in enumerate(zip(found, lengths, strict=True)):
        axes.annotate(
            words(one),
            (max(value, 1), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(list(places), [label(one, found) for one in found], fontsize=8)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter("{x:g} x")
    axes.set_xlim(min([*lengths, 1]) * 0.7, max([*lengths, 1]) * 8)
    axes.set_xlabel("times better than the usual client (left of 1: worse)", fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(caption, loc="left", fontsize=9)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)


def length(one: Comparison) -> float:
    """Return the length of the bar of a comparison."""
    if one.times_better is not None:
        return min(max(one.times_better, 1 / BEYOND), BEYOND)
    return 1 / BEYOND if one.ours else BEYOND


def label(one: Comparison, found: Sequence[Comparison]) -> str:
    """Return the label of a comparison, with the case if there are several."""
    has_cases = len({other.case for other in found if other.benchmark == one.benchmark}) > 1
    case = f" ({one.case})" if has_cases else ""
    return f"{one.benchmark}: {one.figure}{case}"


def words(one: Comparison) -> str:
    """Return the two figures and their ratio as text."""
    ratio = f"{one.times_better:.3g} x   " if one.times_better is not None else ""
    return f"{ratio}{cell_text(one.ours)} : {cell_text(one.other)}"
