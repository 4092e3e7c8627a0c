"""Play a scenario with every fault, and with every pair of faults, on all cores.

Two faults are a pair if the second comes before the group is at rest again after the first. Pairs
whose second fault comes later are cut: they are two single faults.
"""

import argparse
import asyncio
import gc
import json
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path

from tests.simulation.pairs.play import Play, faults_at, fewest, play
from tests.simulation.pairs.points import Fault, FaultKind, Point
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
    first: str
    """The single fault."""

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
        "--journal",
        type=Path,
        metavar="FILE",
        help="keep there what is done, and do not play it again: for the same code only",
    )
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
    return _play_all(jobs, asked.jobs, asked.journal)


def _fault(text: str) -> Fault:
    number, _, kind = text.partition(":")
    return Fault(int(number), FaultKind[kind])


def _play_all(jobs: Sequence[Job], processes: int, journal: Path | None) -> int:
    done_before = _journaled(jobs, journal)
    ended = {(done.scenario, done.first) for done in done_before}
    jobs_now = [job for job in jobs if (job.scenario, str(job.fault)) not in ended]
    began_s = printed_s = time.monotonic()
    played, cut, failed, jobs_left = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    jobs_left.update(job.scenario for job in jobs)
    with multiprocessing.Pool(processes, initializer=gc.disable) as pool:
        now = _kept(pool.imap_unordered(_play, jobs_now), journal)
        for number, done in enumerate(chain(done_before, now), 1 - len(done_before)):
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
                left_s = (now_s - began_s) / max(1, number) * (len(jobs_now) - number)
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


def _journaled(jobs: Sequence[Job], journal: Path | None) -> list[Done]:
    """Return what of these jobs an earlier run did."""
    if journal is None or not journal.exists():
        return []
    asked = {(job.scenario, str(job.fault)) for job in jobs}
    found = [Done(*json.loads(line)) for line in journal.read_text("utf-8").splitlines()]
    return [done for done in found if (done.scenario, done.first) in asked]


def _kept(dones: Iterable[Done], journal: Path | None) -> Iterator[Done]:
    """Write what is done to the journal."""
    for done in dones:
        if journal is not None:
            with journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(astuple(done)) + "\n")
        yield done


class Branches:
    """Branches a play at each point after its first fault: a process for each fault there.

    What came before the second fault is so played once for all pairs that share it.
    """

    def __init__(self, first: Fault) -> None:
        self.played = 0
        self.failed: list[Fault] = []
        """The second faults with which a process found a violation."""

        self.is_branch = False
        """Whether this process has a second fault."""

        self._first = first

    def choose(self, point: Point) -> FaultKind | None:
        """Play on with each fault at a point; return it in its process, and none in this one."""
        if self.is_branch or point.number <= self._first.point:
            return None
        loop, process_id = asyncio.get_running_loop(), os.getpid()
        for kind in point.kinds:
            child = os.fork()
            if not child:
                # It goes on as the same process, with the same loop.
                asyncio._set_running_loop(loop)
                os.getpid = lambda: process_id
                self.is_branch = True
                return kind
            self.played += 1
            if os.waitpid(child, 0)[1]:
                self.failed.append(Fault(point.number, kind))
        return None


def _play(job: Job) -> Done:
    branches = Branches(job.fault)
    first = play(job.scenario, [job.fault], branches.choose if job.is_first else None)
    if branches.is_branch:
        os._exit(first.violation is not None)
    plays: list[Play] = [first] if first.violation is not None else []
    plays.extend(play(job.scenario, [job.fault, fault]) for fault in branches.failed)
    gc.collect()  # worlds are cyclic garbage
    cut = sum(1 for _ in faults_at(first.later)) if job.is_first else 0
    return Done(job.scenario, str(job.fault), 1 + branches.played, cut, list(_told(plays)))


def _told(plays: Sequence[Play]) -> Iterator[str]:
    for found in plays:
        yield str(fewest(found))


if __name__ == "__main__":
    sys.exit(main())
