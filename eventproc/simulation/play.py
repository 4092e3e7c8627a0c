"""Plays a script on virtual time."""

from math import inf

from eventproc.simulation.history import History
from eventproc.simulation.other_systems.external import ClientProfile
from eventproc.simulation.scaled_world import ScaledWorld
from eventproc.simulation.script import Script
from eventproc.simulation.world import StoreFactory, World
from eventproc.testing._processes import run_processes


def play(
    script: Script, make_account: StoreFactory, profile: ClientProfile | None = None
) -> History:
    """Run a script on virtual time. The same script gives the same history.

    With *profile* it runs foreign processors, without a scaler: see
    ``eventproc.simulation.other_systems.systems``.
    """

    async def main() -> History:
        if script.scaling is not None and profile is None:
            return await ScaledWorld(script, script.scaling, make_account).play()
        return await World(script, make_account, profile).play()

    return run_processes(main(), within_s=inf)
