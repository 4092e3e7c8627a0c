"""Plays a script on virtual time."""

from math import inf

from eventproc.simulation.history import History
from eventproc.simulation.scaled_world import ScaledWorld
from eventproc.simulation.script import Script
from eventproc.simulation.world import StoreFactory, World
from eventproc.testing._processes import run_processes


def play(script: Script, make_account: StoreFactory) -> History:
    """Run a script on virtual time. The same script gives the same history."""

    async def main() -> History:
        if script.scaling is not None:
            return await ScaledWorld(script, script.scaling, make_account).play()
        return await World(script, make_account).play()

    return run_processes(main(), within_s=inf)
