"""Play worlds in a mutant until an invariant is violated.

    python -m tests.mutation.worlds '{"first": 0, "stop": 20, "skipped": []}' OUTPUT

The result is in the file: the world that was played last, and its violation if there is one. Time
is virtual: a world that never ends, or that loops at one moment, reports a violation itself. If not
even that works, the limit of CPU time ends the process.
"""

import gc
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Final

import eventproc
from eventproc.testing import VirtualTimeLoop
from tests.mutation.guard import ROOT
from tests.simulation.invariants import Violation
from tests.simulation.suites import SUITES, play

TURNS_MAX: Final = 50_000
"""Limit of loop turns at one moment; hundreds of times what a world needs."""

WORLD_CPU_S: Final = 60.0
"""Limit of CPU time, after which SIGPROF ends the process; worlds need a hundredth."""

MEMORY_MAX: Final = 4 << 30
COLLECT_EVERY: Final = 10


def main() -> None:
    """Play every suite with each seed in turn."""
    assert eventproc.__file__.startswith(str(ROOT)), "must run in the mutant's copy"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    VirtualTimeLoop.turns_max = TURNS_MAX
    gc.disable()
    request, output = json.loads(sys.argv[1]), Path(sys.argv[2])
    skipped = {tuple(world) for world in request["skipped"]}
    for seed in range(request["first"], request["stop"]):
        for suite in request["suites"] or SUITES:
            if (suite, seed) in skipped:
                continue
            output.write_text(json.dumps({"suite": suite, "seed": seed}))
            signal.setitimer(signal.ITIMER_PROF, WORLD_CPU_S)
            try:
                play(suite, seed)
            except Violation as violation:
                if isinstance(violation.__cause__, MemoryError):
                    signal.raise_signal(signal.SIGPROF)
                result = {"suite": suite, "seed": seed, "violation": str(violation)}
                output.write_text(json.dumps(result))
                return
        if seed % COLLECT_EVERY == 0:
            gc.collect()  # worlds are cyclic garbage
    output.write_text("{}")


if __name__ == "__main__":
    main()
