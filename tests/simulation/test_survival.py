"""Whole groups through everything that goes wrong; then they must be balanced, and rest."""

import os
import subprocess
import sys

import pytest

from eventproc import LoadBalancingStrategy
from eventproc.testing.processes import run_processes
from tests.simulation.faults import draw, play
from tests.simulation.invariants import Violation
from tests.simulation.world import World

HEALED_WITHIN_S = 400.0
QUIET_INTERVALS = 100


async def survive(seed, strategy):
    """Let a story happen; return the world's history."""
    story = draw(seed, strategy)
    world = World(
        seed,
        partition_count=story.partition_count,
        config=story.config,
        checkpoint_rate=story.checkpoint_rate,
    )
    try:
        await play(story, world)
        await world.until("is_balanced", HEALED_WITHIN_S)
        world.stop_publishing()
        await world.until("is_all_handled", HEALED_WITHIN_S)
        await world.rest(QUIET_INTERVALS)
        await world.end()
    except Violation as violation:
        found = [*world.invariants.violations[:10], str(violation)]
        raise Violation("\n".join(dict.fromkeys(found))) from violation
    finally:
        world.stop_publishing()
        world.bury()
    return world.invariants.history


REPEATED = """
from eventproc import LoadBalancingStrategy
from eventproc.testing.processes import run_processes
from tests.simulation.test_survival import survive
print(run_processes(survive(7, LoadBalancingStrategy.COOPERATIVE)))
"""


def test_a_seed_gives_one_history_on_every_machine():
    """Else nobody could look at a failure again; not even the order of a set may matter."""
    histories = {
        subprocess.run(
            [sys.executable, "-c", REPEATED],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(histories) == 1
    assert len(histories.pop()) > 1000


@pytest.mark.parametrize("strategy", LoadBalancingStrategy, ids=lambda strategy: strategy.value)
def test_a_group_survives_everything(strategy, seed):
    """Nothing is lost, nothing goes back, nobody acts twice; and then nothing moves any more."""
    try:
        run_processes(survive(seed, strategy))
    except Violation as violation:
        pytest.fail(
            f"{violation}\nto see it again: pytest {__name__.replace('.', '/')}.py "
            f"-k {strategy.value} --first-seed {seed} --seeds 1",
            pytrace=False,
        )
