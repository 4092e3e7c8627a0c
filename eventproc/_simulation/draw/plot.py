"""Plots a history, with ``matplotlib``, the extra ``plot``.

The upper plot shows each partition over time in its owner's colour, and black where no processor
serves it. The lower ones show the spread, the number of processes if a scaler decides it, and the
storage operations.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from eventproc._base.extras import needing
from eventproc._simulation.draw.picture import (
    Row,
    caption_of,
    colour_of,
    levels,
    owners_of,
    per_minute,
    rows_of,
)
from eventproc._simulation.history import History
from eventproc._simulation.report import HOUR_S, Report, steps_of
from eventproc.errors import ConfigurationError

with needing("plot"):
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter, MaxNLocator

COLUMNS: Final = 1600
"""Horizontal resolution: moments shown, from left to right."""

UNATTENDED: Final = (0.07, 0.07, 0.07)

NAMED_OWNERS_MAX: Final = 40
"""The most names that have room at a side."""


def draw_partitions(axes: Axes, history: History) -> None:
    """Draw the partitions, and name their owners at the sides."""
    rows, owners = rows_of(history), owners_of(history)
    colours = {owner_id: colour_of(number) for number, owner_id in enumerate(owners)}
    image = np.zeros((len(rows), COLUMNS, 3))
    for line, row in zip(image, rows, strict=True):
        for span in row.spans:
            begin, end = (
                round(x / history.duration_s * COLUMNS) for x in (span.begin_s, span.end_s)
            )
            if span.owner_id is None:
                # A brief gap is shown too, at least one column wide.
                line[begin : max(end, begin + 1)] = UNATTENDED
            else:
                line[begin:end] = colours[span.owner_id]
    axes.imshow(
        image,
        aspect="auto",
        interpolation="nearest",
        extent=(0, history.duration_s, len(rows), 0),
    )
    _name_owners(axes, rows)


def _name_owners(axes: Axes, rows: Sequence[Row]) -> None:
    """Label each block of partitions with its first owner on the left, its last on the right."""
    first = _blocks([row.first_owner_id or "no owner" for row in rows])
    step = -(-len(first) // NAMED_OWNERS_MAX)
    axes.set_yticks([middle for middle, _ in first[::step]])
    axes.set_yticklabels([name for _, name in first[::step]], fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel(f"{len(rows):,} partitions, by first owner", fontsize=9)
    last = _blocks([row.spans[-1].owner_id or "not served" for row in rows])
    free_from = 0.0
    for middle, name in last:
        if middle < free_from:
            continue
        free_from = middle + len(rows) / NAMED_OWNERS_MAX
        axes.text(
            1.004, middle, name, fontsize=7, va="center", transform=axes.get_yaxis_transform()
        )


def _blocks(names: Sequence[str]) -> list[tuple[float, str]]:
    """Return the middle and the name of each run of equal names."""
    begins = [i for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    ends = [*begins[1:], len(names)]
    return [((begin + end) / 2, names[begin]) for begin, end in zip(begins, ends, strict=True)]


BACKLOG: Final = (0.86, 0.65, 0.32)


def draw_scaling(axes: Axes, history: History) -> None:
    """Draw the processes that run and those that are wanted, and behind them the backlog."""
    votes = history.votes
    times_s = [*(vote.at_seconds for vote in votes), history.duration_s]
    backlog = axes.twinx()
    most = max(vote.backlog for vote in votes)
    backlog.stairs([vote.backlog for vote in votes], times_s, fill=True, color=BACKLOG, alpha=0.5)
    backlog.set_ylim(0, 1.35 * most or 1)
    backlog.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    backlog.set_ylabel("backlog", fontsize=8, color=tuple(0.75 * part for part in BACKLOG))
    axes.set_zorder(backlog.get_zorder() + 1)
    axes.patch.set_visible(False)
    wanted = [float("nan") if vote.replicas is None else vote.replicas for vote in votes]
    running = [vote.running for vote in votes]
    axes.stairs(running, times_s, baseline=None, color="0.2", linewidth=1.4, label="running")
    axes.stairs(
        wanted, times_s, baseline=None, color="0.2", linewidth=1, linestyle=":", label="wanted"
    )
    axes.set_ylim(0, 1.35 * max(1, *running, *(vote.replicas or 0 for vote in votes)))
    axes.set_ylabel("processes", fontsize=9)
    axes.legend(loc="upper right", ncols=2, fontsize=7.5, frameon=False, borderaxespad=0.1)
    for each in (axes, backlog):
        each.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        each.tick_params(labelsize=7)


SUFFIXES: Final = {".svg", ".png"}
UNPLANNED: Final = (0.86, 0.37, 0.16)
UNBALANCED: Final = (0.62, 0.62, 0.62)
KEY_OWNERS_MAX: Final = 9
"""More have no room in one line; they are named at the sides."""

KEY_TOP: Final = 0.963
KEY_LEFT: Final = 0.08
KEY_OWNERS_LEFT: Final = 0.58
CAPTION_LEVELS: Final = 3
CAPTION_WIDTH: Final = 0.125
CAPTION_HEIGHT: Final = 0.105
"""Size of a caption, as a fraction of the upper plot."""

BINS: Final = 120


def check_path(path: Path) -> None:
    """Check that a plot can be written to this path, before anything is simulated.

    Raises:
        ConfigurationError: The path does not end in .svg or .png, or its folder does not exist.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(f"plot {str(path)!r}: give a file that ends in .svg or .png")
    if not path.parent.is_dir():
        raise ConfigurationError(f"plot {str(path)!r}: there is no folder {str(path.parent)!r}")


def draw(history: History, report: Report, title: str, path: Path) -> None:
    """Plot one history to a file."""
    is_scaled = bool(history.votes)
    figure = Figure(figsize=(13, 8.6 + 1.4 * is_scaled), dpi=110)
    FigureCanvasAgg(figure)
    heights = [6, 1.1, *([1.6] if is_scaled else []), 1.6]
    grid = figure.add_gridspec(
        len(heights),
        1,
        height_ratios=heights,
        left=0.08,
        right=0.95 - 0.02 * is_scaled,
        bottom=0.07,
        hspace=0.12,
    )
    above = figure.add_subplot(grid[0])
    spread, *scaled, operations = (
        figure.add_subplot(grid[row], sharex=above) for row in range(1, len(heights))
    )
    figure.suptitle(title, x=0.08, y=0.985, ha="left", fontsize=11, fontweight="bold")
    draw_partitions(above, history)
    _draw_spread(spread, history)
    for axes in scaled:
        draw_scaling(axes, history)
    _draw_operations(operations, history)
    _draw_events((above, spread, *scaled, operations), history)
    caption_levels = _write_captions(above, history, report)
    figure.subplots_adjust(top=0.925 - 0.055 * caption_levels)
    _write_key(figure, owners_of(history))
    for axes in (above, spread, *scaled):
        axes.tick_params(labelbottom=False)
    _label_time(operations, history.duration_s)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    # No date in the file: the same history gives the same bytes.
    metadata: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
    try:
        figure.savefig(path, metadata=metadata)
    except OSError as error:
        raise ConfigurationError(f"plot {str(path)!r} cannot be written: {error}") from error


def _draw_spread(axes: Axes, history: History) -> None:
    """Draw the spread; colour the background while the group is not balanced."""
    steps = steps_of(history)
    times_s = [step.at_s for step in steps] + [history.duration_s]
    spreads = [step.spread for step in steps]
    shown = [float("nan") if spread is None else spread for spread in spreads]
    axes.stairs(shown, times_s, baseline=None, color="0.2", linewidth=1.2)
    for step, end_s in zip(steps, times_s[1:], strict=True):
        if not step.is_balanced:
            begin_s, colour = step.at_s, UNBALANCED if step.spread is None else UNPLANNED
            least_s = history.duration_s / COLUMNS
            axes.axvspan(begin_s, max(end_s, begin_s + least_s), color=colour, linewidth=0)
    largest = max((spread for spread in spreads if spread is not None), default=1)
    axes.set_ylim(-0.04 * largest - 0.26, 1.06 * largest + 0.7)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.tick_params(labelsize=7)
    axes.set_ylabel("spread", fontsize=9)


def _draw_operations(axes: Axes, history: History) -> None:
    edges_s = [history.duration_s * i / BINS for i in range(BINS + 1)]
    kinds = (
        ("lists", history.listings, (0.45, 0.62, 0.8)),
        ("writes", history.writes, (0.86, 0.65, 0.32)),
        ("checkpoints", history.checkpoint_operations, (0.66, 0.66, 0.66)),
    )
    below = [0.0] * BINS
    for name, happened, colour in kinds:
        rates = per_minute(happened, history.duration_s, BINS)
        top = [low + rate for low, rate in zip(below, rates, strict=True)]
        axes.stairs(top, edges_s, baseline=below, fill=True, color=colour, label=name)
        below = top
    axes.set_ylim(0, max(below) * 1.35 or 1)
    axes.set_ylabel("storage operations\nper minute", fontsize=9)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=7)
    axes.legend(loc="upper right", ncols=3, fontsize=7.5, frameon=False, borderaxespad=0.1)


def _draw_events(all_axes: Sequence[Axes], history: History) -> None:
    for script_event in history.script_events[1:]:
        for axes in all_axes:
            axes.axvline(script_event.at_s, color="white", linewidth=2.2)
            axes.axvline(script_event.at_s, color="black", linewidth=0.9, linestyle=(0, (4, 2)))


def _write_captions(axes: Axes, history: History, report: Report) -> int:
    """Write a caption above each script event; return how many levels of captions that took."""
    places = [script_event.at_s / history.duration_s for script_event in history.script_events]
    lefts = [min(place, 1 - CAPTION_WIDTH) for place in places]
    chosen = levels(lefts, [CAPTION_WIDTH] * len(lefts), CAPTION_LEVELS)
    for event, place, left, level in zip(report.events, places, lefts, chosen, strict=True):
        bottom = 1.015 + level * CAPTION_HEIGHT
        above: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([place, place, left], [1, bottom, bottom], color="0.5", linewidth=0.7, **above)
        axes.text(
            left + 0.003,
            bottom,
            caption_of(event),
            fontsize=7.5,
            va="bottom",
            zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            **above,
        )
    return max(chosen) + 1


def _write_key(figure: Figure, owners: Sequence[str]) -> None:
    states = [
        Patch(color=UNATTENDED, label="not served"),
        Patch(color=UNBALANCED, label="some without an owner, or with one that leaves"),
        Patch(color=UNPLANNED, label="some with another owner than planned"),
    ]
    named = owners if len(owners) <= KEY_OWNERS_MAX else ()
    processors = [Patch(color=colour_of(n), label=owner_id) for n, owner_id in enumerate(named)]
    for handles, column in ((states, KEY_LEFT), (processors, KEY_OWNERS_LEFT)):
        if handles:
            figure.add_artist(
                Legend(
                    figure,
                    handles,
                    [str(handle.get_label()) for handle in handles],
                    loc="upper left",
                    bbox_to_anchor=(column, KEY_TOP),
                    ncols=len(handles),
                    fontsize=8,
                    frameon=False,
                    borderaxespad=0,
                    handlelength=1.2,
                    columnspacing=1.2,
                )
            )


def _label_time(axes: Axes, duration_s: float) -> None:
    unit_s, unit = next(
        (unit_s, unit)
        for unit_s, unit in ((HOUR_S, "hours"), (60, "minutes"), (1, "seconds"))
        if duration_s > 2 * unit_s
    )
    axes.xaxis.set_major_locator(_Steps(unit_s))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit_s:g}"))
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlim(0, duration_s)
    axes.set_xlabel(f"virtual {unit}", fontsize=8)


class _Steps(MaxNLocator):
    """Ticks at round numbers of a unit."""

    def __init__(self, unit_s: float) -> None:
        super().__init__(nbins=8, steps=[1, 2, 5, 10])
        self._unit_s = unit_s

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the places of the ticks, in seconds."""
        ticks = super().tick_values(vmin / self._unit_s, vmax / self._unit_s)
        return [tick * self._unit_s for tick in ticks]
