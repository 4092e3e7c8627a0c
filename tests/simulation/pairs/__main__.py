"""Play a scenario with every fault, and with every pair of faults, on all cores.

Two faults are a pair if the second comes before the group is at rest again after the first. Pairs
whose second fault comes later are cut: they are two single faults.
"""

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.simulation.pairs.play import Play, faults_at, fewest, play, seconds_after
from tests.simulation.pairs.points import Fault, FaultKind
from tests.simulation.pairs.scenarios import SCENARIOS

PROGRESS_EVERY_S = 10.0

logging.getLogger("eventproc").setLevel(logging.CRITICAL + 1)  # The faults are intended.


@dataclass(frozen=True, slots=True)
class Job:
    """A single fault, and perhaps the pairs whose first it is."""

    scenario: str
    fault: Fault
    is_first: bool


@dataclass(frozen=True, slots=True)
class Done:
    """What a job played."""

    scenario: str
    played: int
    cut: int
    violations: Sequence[str]


def main() -> int:
    """Play what the command line says; return 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="make pairs", description=__doc__)
    parser.add_argument("--scenario", choices=SCENARIOS, action="append", help="only this one")
    parser.add_argument("--singles", action="store_true", help="no pairs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument(
        "--again", nargs="*", metavar="POINT:KIND", help="play these faults, and tell what happens"
    )
    asked = parser.parse_args()
    scenarios = asked.scenario or list(SCENARIOS)
    if asked.again is not None:
        found = play(scenarios[0], map(_fault, asked.again))
        print(found)
        return int(found.violation is not None)
    jobs = [
        Job(name, fault, is_first=not asked.singles)
        for name in scenarios
        for fault in faults_at(play(name).points)
    ]
    return _play_all(jobs, asked.jobs)


def _fault(text: str) -> Fault:
    number, _, kind = text.partition(":")
    return Fault(int(number), FaultKind[kind])


def _play_all(jobs: Sequence[Job], processes: int) -> int:
    began_s = printed_s = time.monotonic()
    played, cut, failed, jobs_left = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    jobs_left.update(job.scenario for job in jobs)
    with multiprocessing.Pool(processes, initializer=gc.disable) as pool:
        for number, done in enumerate(pool.imap_unordered(_play, jobs), 1):
            name = done.scenario
            played[name] += done.played
            cut[name] += done.cut
            failed[name] += len(done.violations)
            jobs_left[name] -= 1
            for violation in done.violations:
                print(f"\n{name}\n{violation}", flush=True)
            if not jobs_left[name]:
                print(f"{name}: {played[name]} played, {cut[name]} cut, {failed[name]} violations")
            now_s = time.monotonic()
            if now_s - printed_s > PROGRESS_EVERY_S:
                printed_s = now_s
                left_s = (now_s - began_s) / number * (len(jobs) - number)
                print(
                    f"{played.total()} played, {failed.total()} violations, {left_s:.0f} s to go",
                    file=sys.stderr,
                    flush=True,
                )
    took_s = time.monotonic() - began_s
    print(
        f"{played.total()} plays in {took_s:.0f} s, {cut.total()} pairs cut: "
        f"{failed.total()} violations"
    )
    return 1 if failed.total() else 0


def _play(job: Job) -> Done:
    first = play(job.scenario, [job.fault])
    plays: list[Play] = [first] if first.violation is not None else []
    played = 1
    if job.is_first and first.violation is None:
        for pair in seconds_after(first):
            played += 1
            found = play(job.scenario, pair)
            if found.violation is not None:
                plays.append(found)
    gc.collect()  # worlds are cyclic garbage
    cut = sum(1 for _ in faults_at(first.later)) if job.is_first else 0
    return Done(job.scenario, played, cut, list(_told(plays)))


def _told(plays: Sequence[Play]) -> Iterator[str]:
    for found in plays:
        yield str(fewest(found))


if __name__ == "__main__":
    sys.exit(main())
