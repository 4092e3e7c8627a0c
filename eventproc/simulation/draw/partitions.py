"""Draws the partitions over time, each in its owner's colour, with the owners' names."""

from collections.abc import Sequence
from typing import Final

from eventproc.extras import needing
from eventproc.simulation.draw.colours import colour_of
from eventproc.simulation.draw.picture import Row, owners_of, rows_of
from eventproc.simulation.history import History

with needing("plot"):
    import numpy as np
    from matplotlib.axes import Axes

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
