"""The suites in which a seed can be run, and how to repeat a failure."""

from collections.abc import Callable, Coroutine

from eventproc.testing._processes import run_processes
from tests.simulation.edges import live_at_the_edge
from tests.simulation.invariants import Violation
from tests.simulation.lanes import LanesWorld, with_lanes
from tests.simulation.scenario import Mode, draw, play_scenario, with_troubles
from tests.simulation.small import scenario as small
from tests.simulation.world import World


async def _play_safety(seed: int) -> World:
    return await play_scenario(draw(seed, Mode.SAFETY))


async def _play_liveness(seed: int) -> World:
    return await play_scenario(draw(seed, Mode.LIVENESS))


def _mode(seed: int) -> Mode:
    return Mode.LIVENESS if seed % 2 else Mode.SAFETY


async def _play_lanes(seed: int) -> World:
    return await play_scenario(with_lanes(draw(seed, _mode(seed)), seed), LanesWorld)


async def _play_troubled(seed: int) -> World:
    return await play_scenario(with_troubles(draw(seed, _mode(seed)), seed))


async def _play_troubled_lanes(seed: int) -> World:
    return await play_scenario(
        with_troubles(with_lanes(draw(seed, _mode(seed)), seed), seed), LanesWorld
    )


SUITES: dict[str, Callable[[int], Coroutine[object, object, World]]] = {
    "small": small.play,
    "safety": _play_safety,
    "liveness": _play_liveness,
    "edges": live_at_the_edge,
    "lanes": _play_lanes,
    "troubled": _play_troubled,
    "troubled-lanes": _play_troubled_lanes,
}


def play(suite: str, seed: int) -> World:
    """Play one seed.

    Raises:
        Violation: An invariant was violated; the message ends with the command to repeat it.
    """
    try:
        return run_processes(SUITES[suite](seed))
    except Exception as error:
        what = str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
        raise Violation(f"{what}\nagain: make sim ARGS='--suite {suite} --seed {seed}'") from error
