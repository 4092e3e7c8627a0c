"""Play many seeds on all cores, or one of them again.

Without ``--suite`` these are small worlds, and for each fiftieth seed one of every other suite.
"""

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from itertools import product

from tests.simulation.invariants import Violation
from tests.simulation.small import scenario as small
from tests.simulation.suites import SUITES, play

CHUNK = 10
"""Seeds that a process plays before it reports them."""

PROGRESS_EVERY_S = 5.0

QUICK = "small"
OTHERS_EVERY = 50
"""The worlds of the other suites take several times as long."""

Play = tuple[str, int]

# The worlds log their intended faults; a failure's message has what matters.
logging.getLogger("eventproc").setLevel(logging.CRITICAL + 1)


def main() -> int:
    """Play the seeds of the command line; return 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--suite", choices=SUITES, action="append", help="only this one")
    parser.add_argument("--seeds", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="this one alone; prints its history")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--stop-at-first", action="store_true", help="end at the first failure")
    asked = parser.parse_args()
    if asked.seed is not None:
        return sum(_show(suite, asked.seed) for suite in asked.suite or [QUICK]) and 1
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    plays = [(suite, seed) for seed, suite in product(seeds, asked.suite or [QUICK])]
    if not asked.suite:
        others = [suite for suite in SUITES if suite != QUICK]
        plays += [(suite, seed) for seed, suite in product(seeds[::OTHERS_EVERY], others)]
    return _play_all(plays, asked.jobs, stops_at_first=asked.stop_at_first)


def _show(suite: str, seed: int) -> int:
    """Play one seed and print what happened in it; a failed small world is shrunk first."""
    if suite == QUICK:
        scenario = small.draw(seed)
        is_failed = small.failure_of(scenario) is not None
        print(small.report(small.shrunk(scenario) if is_failed else scenario))
        return int(is_failed)
    try:
        world = play(suite, seed)
    except Violation as violation:
        print(violation)
        return 1
    for at_s, what, subject in world.invariants.history:
        print(f"{at_s:10.3f}  {subject}: {what}")
    return 0


def _play_all(plays: list[Play], jobs: int, *, stops_at_first: bool) -> int:
    began_s = printed_s = time.monotonic()
    chunks = [plays[n : n + CHUNK] for n in range(0, len(plays), CHUNK)]
    done = failed = 0
    with multiprocessing.Pool(jobs, initializer=gc.disable) as pool:
        for count, failures in pool.imap_unordered(_play_chunk, chunks):
            done += count
            failed += len(failures)
            for failure in failures:
                print(f"\n{failure}", flush=True)
            now_s = time.monotonic()
            if now_s - printed_s > PROGRESS_EVERY_S:
                printed_s = now_s
                left_s = (now_s - began_s) / done * (len(plays) - done)
                print(
                    f"{done} of {len(plays)} worlds, {failed} failed, {left_s:.0f} s to go",
                    file=sys.stderr,
                    flush=True,
                )
            if failed and stops_at_first:
                break
    took_s = time.monotonic() - began_s
    print(f"{done} worlds in {took_s:.0f} s: {failed} failed")
    return 1 if failed else 0


def _play_chunk(plays: list[Play]) -> tuple[int, list[str]]:
    return len(plays), list(_failures(plays))


def _failures(plays: list[Play]) -> Iterator[str]:
    """Yield one text for each seed that fails."""
    for suite, seed in plays:
        try:
            play(suite, seed)
        except Violation as violation:
            shrunk = small.report(small.shrunk(small.draw(seed))) if suite == QUICK else ""
            yield f"{suite} {seed}: {violation}\n{shrunk}".rstrip()
    gc.collect()  # worlds are cyclic garbage


if __name__ == "__main__":
    sys.exit(main())
