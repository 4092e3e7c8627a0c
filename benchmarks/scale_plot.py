"""Draw the output of ``scale.py``: steady storage operations and their price, by size of the fleet.

.venv/bin/python benchmarks/scale.py > scale.jsonl
.venv/bin/python benchmarks/scale_plot.py scale.jsonl docs/images/scale.png
"""

import json
import sys
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

COLOURS = {"partition": (0.86, 0.55, 0.2), "session": (0.25, 0.45, 0.72)}


def main(source: Path, target: Path) -> None:
    lines = [json.loads(x) for x in source.read_text().splitlines() if x.startswith("{")]
    steady = [line for line in lines if "dollars_per_month" in line]
    figure = Figure(figsize=(10, 4.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    operations, dollars = figure.subplots(1, 2)
    for mode, colour in COLOURS.items():
        of_mode = [line for line in steady if line["lease_mode"] == mode]
        sizes = [line["size"].replace("x", " x ") for line in of_mode]
        rates = [line["lists_per_hour"] + line["writes_per_hour"] for line in of_mode]
        prices = [line["dollars_per_month"] for line in of_mode]
        for axes, values in ((operations, rates), (dollars, prices)):
            axes.plot(sizes, values, "o-", color=colour, label=f"leases by {mode}")
            for place, value in enumerate(values):
                is_above = mode == "partition"
                axes.annotate(
                    f"{value:,.0f}",
                    (place, value),
                    xytext=(0, 7 if is_above else -15),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8,
                    color=colour,
                )
    operations.set_title("storage operations an hour, at rest", loc="left", fontsize=10)
    dollars.set_title("US dollars a month, at rest", loc="left", fontsize=10)
    for axes in (operations, dollars):
        axes.set_yscale("log")
        axes.margins(x=0.1, y=0.15)
        axes.set_xlabel("partitions x processors", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(fontsize=8, frameon=False, loc="upper left")
    figure.savefig(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
