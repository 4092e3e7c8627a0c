"""Play worlds in a mutant until a promise is broken.

    python -m tests.mutation.worlds '{"first": 0, "stop": 20, "skipped": []}' OUTPUT

What it found is in the file: the world that was played last, and what it broke, if it did. Time is
the worlds' own: one that never ends, or goes round and round at one moment, is a broken promise
that the world itself reports. Where not even that helps, its processor time runs out, and the
process is ended.
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
"""Hundreds of times as many as a world has at one moment."""

WORLD_CPU_S: Final = 60.0
"""Hundreds of times what a world takes; SIGPROF ends the process."""

MEMORY_MAX: Final = 4 << 30
COLLECT_EVERY: Final = 10


def main() -> None:
    """Play every suite with each seed in turn."""
    assert eventproc.__file__.startswith(str(ROOT)), "the mutant itself is tried"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    VirtualTimeLoop.turns_max = TURNS_MAX
    gc.disable()
    asked, output = json.loads(sys.argv[1]), Path(sys.argv[2])
    skipped = {tuple(world) for world in asked["skipped"]}
    for seed in range(asked["first"], asked["stop"]):
        for suite in asked["suites"] or SUITES:
            if (suite, seed) in skipped:
                continue
            output.write_text(json.dumps({"suite": suite, "seed": seed}))
            signal.setitimer(signal.ITIMER_PROF, WORLD_CPU_S)
            try:
                play(suite, seed)
            except Violation as violation:
                if isinstance(violation.__cause__, MemoryError):
                    signal.raise_signal(signal.SIGPROF)
                told = {"suite": suite, "seed": seed, "violation": str(violation)}
                output.write_text(json.dumps(told))
                return
        if seed % COLLECT_EVERY == 0:
            gc.collect()  # A world is one great ring of references.
    output.write_text("{}")


if __name__ == "__main__":
    main()
