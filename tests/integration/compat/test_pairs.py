"""Each program runs on Azure's client and on ours, unchanged but for the import.

What it observes has to be the same. A difference is in ``BETTER``, and on docs/migrate.md.
"""

import asyncio
import gc
import inspect
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.integration.compat import aio_programs, threads_programs, unusual_programs
from tests.integration.compat.sides import SIDES, Place

# Azure's client does not close all of its connections.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:coroutine:RuntimeWarning",
    "ignore:Azure's BlobCheckpointStore:UserWarning",
)

MODULES = aio_programs, threads_programs, unusual_programs
ALL = {program.__name__: program for module in MODULES for program in module.PROGRAMS}

QUICK = (
    "recv",
    "checkpoint_by_event_count",
    "buffer_and_checkpoint_at_close",
    "batch_with_checkpoint",
    "idle_events",
    "last_enqueued",
    "error_in_callback",
    "error_in_other_callbacks",
    "unknown_partition",
    "wrong_hub",
    "cancelled",
    "event_data",
    "refused_arguments",
    "ways_to_construct",
    "checkpoint_going_back",
    "recv_in_a_thread",
    "error_in_a_callback",
    "closed_in_a_callback",
)
"""They take some ten seconds together."""

SMOKE = ("recv_in_a_thread", "checkpoint_by_event_count")
"""Beside the first one: the client for threads and the blob store, once, in ``make test``."""

BETTER: dict[str, tuple[Any, Any]] = {
    "error_without_checkpoint_from_latest": ([1, 2, 4], [1, 2, 1, 2, 3, 4]),
    "checkpoint_going_back": ("0", "2"),
    "checkpoint_after_the_close": (["0"], []),
    "inclusive_after_a_checkpoint": ([[0, 1], [1, 2]], [[0, 1], [2]]),
    "cancelled_in_a_callback": (
        ["initialize", 0, "begins", "cancelled", "close SHUTDOWN"],
        ["initialize", 0, "begins", "ends", "close SHUTDOWN"],
    ),
    "closed_in_a_callback_of_aio": (
        ["initialize", 0, "cancelled", "close SHUTDOWN"],
        ["initialize", 0, "returned", "close SHUTDOWN"],
    ),
}
"""Programs that observe something else: with Azure's client, and with ours."""

AGAIN_MAX = 2
"""On a busy machine Azure's client divides batches otherwise, or hangs, now and then. A difference
that is ours stays when both programs run again, with nothing beside them."""

HANGS_S = 180
"""A program that takes longer hangs, and counts as a difference."""

Attempt = tuple[Future[Any], Future[Any]]
"""What a program observes with Azure's client, and with ours."""

Observations = dict[str, tuple[Attempt, Callable[[int], Attempt]]]
"""By program; and how to begin it again, for which time."""


def observe(program: Callable[[Place], Any], place: Place) -> Any:
    """Run one program on one side."""
    if inspect.iscoroutinefunction(program):
        return asyncio.run(asyncio.wait_for(program(place), HANGS_S))
    return program(place)


def observing(
    programs: Iterable[str], request: pytest.FixtureRequest, storage: str
) -> Iterator[Observations]:
    """Begin those of these programs on both sides whose tests are run."""
    tests = [item.name for item in request.session.items]
    names = [name for name in programs if any(test.endswith(f"[{name}]") for test in tests)]
    times = range(1 + AGAIN_MAX)
    hubs = {f"{name}-{side}-{n}": 4 for name in names for side in SIDES for n in times}
    with EventHubsEmulator(hubs) as emulator, ThreadPoolExecutor(12) as pool:

        def begun(name: str, time: int) -> Attempt:
            azures, ours = (
                pool.submit(
                    observe, ALL[name], Place(side, emulator, f"{name}-{side}-{time}", storage)
                )
                for side in SIDES
            )
            return azures, ours

        yield {name: (begun(name, 0), partial(begun, name)) for name in names}
    gc.collect()  # here, where what Azure's client has not closed is expected


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest, storage: str) -> Iterator[Observations]:
    """Yield what the quick programs observe."""
    yield from observing(QUICK, request, storage)


@pytest.fixture(scope="module")
def others(request: pytest.FixtureRequest, storage: str) -> Iterator[Observations]:
    """Yield what the other programs observe."""
    yield from observing((name for name in ALL if name not in QUICK), request, storage)


def check(name: str, observations: Observations) -> None:
    attempt, again = observations[name]
    for time in range(1, 1 + AGAIN_MAX):
        if is_as_expected(name, attempt):
            break
        wait([future for (both, _) in observations.values() for future in both])
        attempt = again(time)
    azures, ours = (future.result() for future in attempt)
    if name in BETTER:
        assert (azures, ours) == BETTER[name]
    else:
        assert ours == azures


def is_as_expected(name: str, attempt: Attempt) -> bool:
    """Whether both sides observe the same, or what ``BETTER`` says."""
    if any(future.exception() for future in attempt):
        return False
    azures, ours = (future.result() for future in attempt)
    return (azures, ours) == BETTER.get(name, (azures, azures))


@pytest.mark.integration
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.smoke if name in SMOKE else ()) for name in QUICK],
)
def test_a_program_observes_the_same(name: str, quick: Observations) -> None:
    """The same, or what ``BETTER`` says."""
    check(name, quick)


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ALL if name not in QUICK])
def test_a_longer_program_observes_the_same(name: str, others: Observations) -> None:
    """The same, or what ``BETTER`` says."""
    check(name, others)
