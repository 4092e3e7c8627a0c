"""Play worlds in a mutant until a promise is broken: ``python -m tests.mutation.worlds SEEDS``.

Prints how many seeds that took; nothing where all hold. Not by pytest, whose start takes longer
than most mutants live.
"""

import signal
import sys
from types import FrameType
from typing import Final

import eventproc
from tests.mutation.guard import ROOT
from tests.simulation.invariants import Violation
from tests.simulation.suites import SUITES, play

WORLD_TIMEOUT_S: Final = 60


def _hang(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError("a world hangs")


def main() -> None:
    """Play every suite with each seed in turn."""
    assert eventproc.__file__.startswith(str(ROOT)), "the mutant itself is tried"
    signal.signal(signal.SIGALRM, _hang)
    for seed in range(int(sys.argv[1])):
        for suite in SUITES:
            signal.alarm(WORLD_TIMEOUT_S)
            try:
                play(suite, seed)
            except (Violation, TimeoutError):
                print(seed + 1)
                return
            finally:
                signal.alarm(0)


if __name__ == "__main__":
    main()
