"""Compare the rows of all benchmarks: eventproc with others, figure by figure.

Two kinds of rows are compared. Those with ``measure``, ``eventproc`` and ``azure`` are comparisons
already. Rows with a ``candidate`` are compared if they are equal except for their figures: names
that begin with ``eventproc`` are this library, each of them compared, those with ``bare`` the limit
of the machine, and of all others the first one is the usual one. A figure's name ends with its
unit.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks._rows import Cell, Row

OURS: Final = "eventproc"
LIMIT: Final = "bare"
MORE_IS_BETTER: Final = re.compile(r"_per_s$")
LESS_IS_BETTER: Final = re.compile(r"(_s|_ms|_us|_mib|_kib|cpu_us_per_\w+|cpu_percent)$")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One figure of eventproc beside those of others."""

    benchmark: str
    case: str
    """The case and the settings."""

    figure: str
    ours: float
    other: float
    other_name: str
    times_better: float | None
    """``None`` if one of the two is 0."""

    limit: float | None = None
    """The limit of the machine itself."""

    best: float | None = None
    """The best of all others, where there are several."""

    times_better_than_best: float | None = None


def comparisons(benchmark: str, rows: Sequence[Row]) -> list[Comparison]:
    """Return everything of one benchmark that can be compared."""
    if all("measure" in row and OURS in row for row in rows):
        return [found for row in rows if (found := _of_measure(benchmark, row))]
    by_case: dict[tuple[tuple[str, Cell], ...], dict[str, Row]] = {}
    for row in rows:
        if "candidate" in row:
            case = tuple((k, v) for k, v in row.items() if is_setting(k, v))
            by_case.setdefault(case, {})[str(row["candidate"])] = row
    return [
        found
        for case, sides in by_case.items()
        for name in sides
        if name.startswith(OURS)
        for found in _of_sides(benchmark, case, name, sides)
    ]


def is_setting(name: str, cell: Cell) -> bool:
    """Whether a cell is a setting of the measurement."""
    return name != "candidate" and not is_figure(name) and not isinstance(cell, float)


def is_figure(name: str) -> bool:
    """Whether a cell of this name is a measured figure."""
    return bool(MORE_IS_BETTER.search(name) or LESS_IS_BETTER.search(name))


def times_better(ours: float, other: float, *, is_more_better: bool) -> float | None:
    """Return how many times better ours is; ``None`` if that is undefined."""
    if ours == other:
        return 1.0
    better, worse = (ours, other) if is_more_better else (other, ours)
    return better / worse if better and worse else None


def _of_measure(benchmark: str, row: Row) -> Comparison | None:
    ours, other, ratio = row[OURS], row["azure"], row["times_better"]
    if not isinstance(ours, int | float) or not isinstance(other, int | float):
        return None
    return Comparison(
        benchmark=benchmark,
        case=str(row.get("settings", "")),
        figure=f"{row['measure']}, {row['unit']}",
        ours=ours,
        other=other,
        other_name="azure",
        times_better=ratio if isinstance(ratio, int | float) else None,
    )


def _of_sides(
    benchmark: str, case: Iterable[tuple[str, Cell]], our_name: str, sides: Mapping[str, Row]
) -> Iterable[Comparison]:
    """Compare one candidate of this library with all others."""
    ours, variant = sides[our_name], our_name.removeprefix(OURS).lstrip("-")
    words = [c if isinstance(c, str) else f"{name} {c}" for name, c in case]
    others = {name: row for name, row in sides.items() if not name.startswith((OURS, LIMIT))}
    if not others:
        return
    usual_name, usual = next(iter(others.items()))
    limits = [row for name, row in sides.items() if name.startswith(LIMIT)]
    for figure, value in ours.items():
        theirs = [row.get(figure) for row in others.values()]
        known = [v for v in theirs if isinstance(v, int | float) and v]
        other = usual.get(figure)
        if not is_figure(figure) or not isinstance(value, int | float) or not value:
            continue
        if not isinstance(other, int | float) or not other:
            continue
        is_more_better = bool(MORE_IS_BETTER.search(figure))
        best = max(known) if is_more_better else min(known)
        limit = limits[0].get(figure) if limits else None
        yield Comparison(
            benchmark=benchmark,
            case=", ".join([variant, *words] if variant else words),
            figure=figure,
            ours=value,
            other=other,
            other_name=usual_name,
            times_better=times_better(value, other, is_more_better=is_more_better),
            limit=limit if isinstance(limit, int | float) else None,
            best=best if len(known) > 1 else None,
            times_better_than_best=(
                times_better(value, best, is_more_better=is_more_better) if len(known) > 1 else None
            ),
        )
