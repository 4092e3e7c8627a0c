"""Each program runs on Azure's client and on ours, unchanged but for the import.

What it observes has to be the same. A difference is in ``BETTER``, and on docs/migrate.md.
"""

import asyncio
import gc
import inspect
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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

Observations = dict[tuple[str, str], Future[Any]]


def observe(program: Callable[[Place], Any], place: Place) -> Any:
    """Run one program on one side."""
    if inspect.iscoroutinefunction(program):
        return asyncio.run(program(place))
    return program(place)


def observing(
    programs: Iterable[str], request: pytest.FixtureRequest, storage: str
) -> Iterator[Observations]:
    """Begin those of these programs on both sides whose tests are run."""
    tests = [item.name for item in request.session.items]
    names = [name for name in programs if any(test.endswith(f"[{name}]") for test in tests)]
    hubs = {f"{name}-{side}": 4 for name in names for side in SIDES}
    with EventHubsEmulator(hubs) as emulator, ThreadPoolExecutor(12) as pool:
        yield {
            (name, side): pool.submit(
                observe, ALL[name], Place(side, emulator, f"{name}-{side}", storage)
            )
            for name in names
            for side in SIDES
        }
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
    azures, ours = (observations[name, side].result() for side in SIDES)
    if name in BETTER:
        assert (azures, ours) == BETTER[name]
    else:
        assert ours == azures


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
