"""Plays a scenario with the faults that were chosen, and tells what happened."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from eventproc.testing._processes import run_processes
from tests.simulation.invariants import Violation
from tests.simulation.pairs.points import Fault, FaultKind, Point
from tests.simulation.pairs.scenarios import SCENARIOS
from tests.simulation.pairs.world import HEALED_WITHIN_S, PairsWorld

Faults = tuple[Fault, ...]
Choose = Callable[[Point], FaultKind | None]
"""Returns the fault at a point."""


@dataclass(frozen=True, slots=True)
class Play:
    """One scenario, played with some faults."""

    scenario: str
    faults: Faults
    points: Sequence[Point]
    """Those before the group was at rest again."""

    later: Sequence[Point]
    """Those after it."""

    violation: str | None
    history: Sequence[tuple[float, str, str]]

    def __str__(self) -> str:
        """Tell it step by step, and how to play it again."""
        lines = [
            f"{at_s:10.3f}  {subject + ': ' if subject else ''}{what}"
            for at_s, what, subject in self.history
        ]
        faults = " ".join(map(str, self.faults))
        again = f"make pairs ARGS='--scenario {self.scenario} --again {faults}'"
        return "\n".join([*lines, self.violation or "every invariant held", f"again: {again}"])


def play(scenario: str, faults: Iterable[Fault] = (), choose: Choose | None = None) -> Play:
    """Play a scenario once.

    *choose* returns the fault at a point that none of *faults* is at, before the group is at rest.
    """
    chosen = tuple(faults)
    kinds = {fault.point: fault.kind for fault in chosen}

    def kind_at(point: Point) -> FaultKind | None:
        return kinds.get(point.number) or (choose and choose(point))

    worlds: list[PairsWorld] = []
    violation = None
    try:
        run_processes(_run(scenario, kind_at, worlds))
    except Violation as found:
        violation = str(found)
    except Exception as error:  # noqa: BLE001 - any error is a violation
        violation = f"{type(error).__name__}: {error}"
    (world,) = worlds
    points, at_rest = world.injector.points, world.injector.point_count_at_rest
    later = [] if at_rest is None else points[at_rest:]
    history = world.invariants.history
    return Play(scenario, chosen, points[:at_rest], later, violation, history)


async def _run(name: str, kind_at: Choose, worlds: list[PairsWorld]) -> None:
    scenario = SCENARIOS[name]
    world = scenario.world(
        name, kind_at, partition_count=scenario.partition_count, config=scenario.config
    )
    worlds.append(world)
    world.behaviour.seconds_per_event = scenario.seconds_per_event
    with world.played():
        if scenario.members:
            world.join(*scenario.members, deployment_id=scenario.deployment_id)
            await world.until_rest()
        world.invariants.note(f"--- {name}", "")
        world.injector.is_counting = True
        world.begun_s = world.now_s
        await scenario.act(world)
        world.begun_s = world.now_s
        await world.until_rest()
        world.injector.rest()
        world.invariants.note("--- at rest", "")
        world.stop_publishing()
        await world.until("is_all_handled", HEALED_WITHIN_S)
        await world.until("is_all_stored", HEALED_WITHIN_S)
        await world.rest(3)
        await world.end()


def faults_at(points: Iterable[Point]) -> Iterator[Fault]:
    """Return all faults at some points."""
    for point in points:
        for kind in point.kinds:
            yield Fault(point.number, kind)


def seconds_after(first: Play) -> Iterator[Faults]:
    """Return all pairs whose first fault is that of a play, and the second comes before rest."""
    (fault,) = first.faults
    for second in faults_at(first.points[fault.point + 1 :]):
        yield fault, second


def fewest(found: Play) -> Play:
    """Return the play with the fewest faults of a failed one that still fails."""
    for fault in found.faults:
        alone = play(found.scenario, [fault])
        if len(found.faults) > 1 and alone.violation is not None:
            return alone
    return found
