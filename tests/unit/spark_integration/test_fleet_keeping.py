"""What a driver makes of its jobs, on a Spark that is played: by a thread for each job."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from eventproc.errors import ConfigurationError
from spark_integration import Fleet, FleetError, Phase
from spark_integration.fleet_board import FleetBoard
from spark_integration.fleet_desk import FleetDesk
from spark_integration.fleet_order import FleetOrder
from spark_integration.fleet_spark import FleetSpark, check_settings
from spark_integration.fleet_status import Report
from tests.unit.spark_integration.test_fleet import REPORT

CANCELLED = "cancelled"
STARTING = replace(REPORT, phase=Phase.STARTING, statistics=None, warnings=())
SERVING = replace(REPORT, warnings=())
ENDED = replace(SERVING, phase=Phase.ENDED)
SOON = timedelta(seconds=30)


class Played(FleetSpark):
    """Places what it is told to, and ends jobs as it is told to."""

    def __init__(self, board: FleetBoard, *, places: int) -> None:
        self._board = board
        self._places = places
        self._is_over = False
        self.jobs: list[int] = []
        self.ends: queue.SimpleQueue[Report | str] = queue.SimpleQueue()
        self.cancelled: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.serve = SERVING

    def thread(self, target: Callable[[int], None], slot: int, *, name: str) -> threading.Thread:
        return threading.Thread(target=target, args=(slot,), name=name, daemon=True)

    def run(self, order: FleetOrder, slot: int) -> Report | str:
        self.jobs.append(slot)
        if slot >= self._places:
            return self.cancelled.get()
        incarnation = f"{len(self.jobs)}"
        self._board.note(replace(self.serve, slot=slot, incarnation=incarnation))
        end = self.ends.get()
        return end if isinstance(end, str) else replace(end, slot=slot, incarnation=incarnation)

    def cancel(self, slot: int) -> None:
        (self.cancelled if slot >= self._places else self.ends).put(CANCELLED)

    def room(self) -> int:
        return self._places

    def is_stopped(self) -> bool:
        return self._is_over

    def end_application(self) -> None:
        self._is_over = True
        self.ends.put("SparkContext was shut down")


class Board(FleetBoard):
    """Tells when members are told to stop."""

    on_stop: Callable[[], object] = bool

    def begin_stop(self) -> None:
        super().begin_stop()
        self.on_stop()


class Stage:
    """A fleet and its Spark."""

    def __init__(self, *, size: int, places: int) -> None:
        board = Board("orders", size, clock=time.monotonic)
        desk = FleetDesk("127.0.0.1", 0, token="token", on_report=board.note)
        order = FleetOrder(
            name="orders",
            host="127.0.0.1",
            port=desk.port,
            token="token",
            driver_patience=SOON,
            stop_timeout=timedelta(0),
            work=b"",
        )
        self.board = board
        self.spark = Played(board, places=places)
        self.fleet = Fleet(self.spark, order, board, desk, size=size)


@pytest.fixture(name="stage")
def _stage() -> Iterator[Callable[..., Stage]]:
    stages = []

    def make(size: int = 1, places: int = 1) -> Stage:
        stages.append(Stage(size=size, places=places))
        return stages[-1]

    yield make
    for stage in stages:
        with suppress(FleetError):
            stage.fleet.stop(timedelta(0))


def test_places_that_never_come_are_an_error(stage, caplog):
    """It names what there is; what was placed is stopped, and what waits is cancelled."""
    made = stage(size=3, places=1)
    made.board.on_stop = lambda: made.spark.ends.put(ENDED)
    with pytest.raises(ConfigurationError, match=r"placed 1 of 3 .* room for 1 tasks at a time"):
        made.fleet.start(timedelta(seconds=0.1))

    assert "fleet_killed" not in caplog.messages
    assert made.fleet.statistics().live_count == 0


def test_who_is_placed_and_never_ready_is_an_error(stage):
    """A store that hangs, say."""
    made = stage()
    made.spark.serve = STARTING
    made.board.on_stop = lambda: made.spark.ends.put(ENDED)
    with pytest.raises(FleetError, match=r"not every processor was ready within 0:00:00\.1"):
        made.fleet.start(timedelta(seconds=0.1))


def test_what_fails_at_the_start_ends_the_fleet_with_its_error(stage):
    """The caller is still there to be told."""
    made = stage()
    made.spark.serve = STARTING
    made.spark.ends.put(replace(ENDED, error="SourceUnavailableError: no hub"))
    with pytest.raises(FleetError, match="processor orders-0: SourceUnavailableError: no hub"):
        made.fleet.start(SOON)


def test_what_can_never_work_ends_the_fleet(stage):
    """Also later: a replacement came to an executor that lacks a module."""
    made = stage()
    made.fleet.start(SOON)
    made.spark.ends.put(replace(ENDED, error="no such module", is_hopeless=True))
    with pytest.raises(ConfigurationError, match="no such module"):
        made.fleet.wait(SOON)
    assert made.spark.jobs == [0]


def test_a_job_that_spark_gave_up_is_submitted_again(stage):
    """For as long as the fleet lives; the error is told, and the others do not notice."""
    made = stage(size=2, places=2)
    made.fleet.start(SOON)
    made.spark.ends.put("Python worker exited unexpectedly (crashed)")
    until_s = time.monotonic() + 15
    while made.fleet.statistics().restart_count < 1 and time.monotonic() < until_s:
        time.sleep(0.01)
    now = made.fleet.statistics()

    assert (len(made.spark.jobs), now.live_count) == (3, 2)
    assert any("worker exited unexpectedly" in text for text in now.warnings)


def test_a_fleet_ends_with_its_application(stage):
    """There is nowhere to submit anything."""
    made = stage()
    made.fleet.start(SOON)
    made.spark.end_application()
    with pytest.raises(FleetError, match="the Spark application has ended"):
        made.fleet.wait(SOON)


def test_a_stop_that_had_to_kill_says_so(stage):
    """By Spark in the end, or by the worker itself; not if all ended in order."""
    hanging = stage()
    hanging.fleet.start(SOON)
    with pytest.raises(FleetError, match="1 of 1 processors of fleet orders did not stop in time"):
        hanging.fleet.stop(timedelta(seconds=0.1))
    assert hanging.fleet.wait(timedelta(0)), "nothing lives on after stop() has returned"

    killed_itself = stage()
    killed_itself.fleet.start(SOON)
    killed_itself.board.begin_stop()
    killed_itself.board.note(replace(SERVING, incarnation="1", phase=Phase.STOPPING))
    killed_itself.spark.ends.put("Python worker exited unexpectedly (crashed)")
    with pytest.raises(FleetError, match="did not stop in time and were killed"):
        killed_itself.fleet.stop()

    orderly = stage()
    orderly.fleet.start(SOON)
    orderly.spark.ends.put(ENDED)
    orderly.fleet.stop()
    assert orderly.fleet.wait()


SPECULATION = {"spark.speculation": "TRUE"}
IDLE = {
    "spark.python.worker.killOnIdleTimeout": "true",
    "spark.python.worker.idleTimeoutSeconds": "5s",
}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**SPECULATION, "spark.speculation.task.duration.threshold": "1h"}, "second attempt"),
        (IDLE, "killOnIdleTimeout kills workers"),
    ],
)
def test_settings_that_disturb_a_fleet_are_refused(settings, named):
    """They say what to do."""
    with pytest.raises(ConfigurationError, match=f"{named}.*switch it off"):
        check_settings(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        SPECULATION,
        {**IDLE, "spark.python.worker.idleTimeoutSeconds": "0"},
        {"spark.dynamicAllocation.enabled": "true"},
    ],
)
def test_settings_that_do_no_harm_are_taken(settings):
    """One task alone in its stage is not speculated; an executor at work is not idle."""
    check_settings(settings)


def test_a_session_of_spark_connect_is_refused():
    """Its driver is elsewhere."""

    class Remote:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"{name} is not supported in Spark Connect")

    with pytest.raises(ConfigurationError, match=r"session of Spark Connect.*by spark-submit"):
        FleetSpark(Remote())
