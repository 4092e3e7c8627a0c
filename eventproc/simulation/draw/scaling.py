"""Draws how the number of processes followed the load."""

from typing import Final

from eventproc.extras import needing
from eventproc.simulation.history import History

with needing("plot"):
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter, MaxNLocator

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
