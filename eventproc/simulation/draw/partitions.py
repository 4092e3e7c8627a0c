"""Draws the partitions over time, each in its owner's colour, with the owners' names."""

from collections.abc import Sequence
from typing import Final

from eventproc.extras import needing
from eventproc.simulation.draw.colours import WHITE, pattern_of
from eventproc.simulation.draw.picture import Label, Row, labels_of, owners_of, rows_of
from eventproc.simulation.history import History

with needing("plot"):
    import numpy as np
    from matplotlib.axes import Axes

COLUMNS: Final = 1600
"""Horizontal resolution: moments shown, from left to right."""

UNATTENDED: Final = (0.07, 0.07, 0.07)

NAMED_OWNERS_MAX: Final = 40

STRIPE: Final = 3
STRIPES_APART: Final = 20
"""Width of a stripe, and from one to the next, in columns."""

NAME_HEIGHT: Final = 0.12
NAME_WIDTH: Final = 0.075
NAME_MARGIN: Final = 0.05
"""Room for a name, in inches: its height, the width of a letter, and the space before it."""


def draw_partitions(axes: Axes, history: History, *, is_named: bool) -> None:
    """Draw the partitions; if asked, name their owners at the sides, too."""
    rows, owners = rows_of(history), owners_of(history)
    patterns = {owner_id: pattern_of(number) for number, owner_id in enumerate(owners)}
    image = np.zeros((len(rows), COLUMNS, 3))
    for line, row in zip(image, rows, strict=True):
        for span in row.spans:
            begin, end = (
                round(x / history.duration_s * COLUMNS) for x in (span.begin_s, span.end_s)
            )
            if span.owner_id is None:
                # A brief gap is shown too, at least one column wide.
                line[begin : max(end, begin + 1)] = UNATTENDED
                continue
            pattern = patterns[span.owner_id]
            line[begin:end] = pattern.colour
            if pattern.is_striped:
                for at in range(-(-begin // STRIPES_APART) * STRIPES_APART, end, STRIPES_APART):
                    line[at : at + STRIPE] = WHITE
    axes.imshow(
        image,
        aspect="auto",
        interpolation="nearest",
        extent=(0, history.duration_s, len(rows), 0),
    )
    axes.set_yticks([])
    if is_named:
        _name_owners(axes, rows)
    first = {row.first_owner_id for row in rows} if is_named else set()
    labels = [label for label in labels_of(rows) if label.owner_id not in first]
    _write_labels(axes, labels, len(rows), history.duration_s)


def _write_labels(axes: Axes, labels: Sequence[Label], row_count: int, duration_s: float) -> None:
    """Write the names of processors that have room for it."""
    width, height = _inches(axes)
    for label in labels:
        tall = label.row_count / row_count * height
        wide = (label.end_s - label.begin_s) / duration_s * width
        if tall < NAME_HEIGHT or wide < NAME_WIDTH * len(label.owner_id):
            continue
        axes.text(
            label.begin_s + duration_s * NAME_MARGIN / width,
            label.first_row + label.row_count / 2,
            label.owner_id,
            fontsize=7,
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.75},
        )


def _name_owners(axes: Axes, rows: Sequence[Row]) -> None:
    """Label each block of partitions with its first owner on the left, its last on the right."""
    first = _blocks([row.first_owner_id or "no owner" for row in rows])
    step = -(-len(first) // NAMED_OWNERS_MAX)
    axes.set_yticks([middle for middle, _ in first[::step]])
    axes.set_yticklabels([name for _, name in first[::step]], fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel(f"{len(rows):,} partitions, by first owner", fontsize=9)
    last = _blocks([row.spans[-1].owner_id or "not served" for row in rows])
    apart = NAME_HEIGHT / _inches(axes)[1] * len(rows)
    free_from = 0.0
    for middle, name in last if len(rows) <= NAMED_OWNERS_MAX else ():
        if middle < free_from:
            continue
        free_from = middle + apart
        axes.text(
            1.004, middle, name, fontsize=7, va="center", transform=axes.get_yaxis_transform()
        )


def _inches(axes: Axes) -> tuple[float, float]:
    """Return width and height of a plot."""
    bounds = axes.get_position()
    figure = axes.get_figure(root=True)
    assert figure is not None, "these axes are part of a figure"
    width, height = figure.get_size_inches()
    return float(width) * bounds.width, float(height) * bounds.height


def _blocks(names: Sequence[str]) -> list[tuple[float, str]]:
    """Return the middle and the name of each run of equal names."""
    begins = [i for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    ends = [*begins[1:], len(names)]
    return [((begin + end) / 2, names[begin]) for begin, end in zip(begins, ends, strict=True)]
