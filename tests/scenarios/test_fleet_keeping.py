"""How the driver keeps a fleet's jobs running and stops them, on a fake Spark."""

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
from spark_integration._fleet import members
from spark_integration._fleet.job import FleetJob
from spark_integration._fleet.jobs import FleetSpark, check_settings
from spark_integration._fleet.members import MemberRegistry
from spark_integration._fleet.report_server import ReportServer
from spark_integration._fleet.statistics import Report
from tests.unit.spark_integration._fleet.test_fleet import REPORT

CANCELLED = "cancelled"
STARTING = replace(REPORT, phase=Phase.STARTING, statistics=None, warnings=())
SERVING = replace(REPORT, warnings=())
ENDED = replace(SERVING, phase=Phase.ENDED)
SOON = timedelta(seconds=30)


class FakeSpark(FleetSpark):
    """Runs jobs without executors: a thread for each, which ends as the test says."""

    def __init__(self, registry: MemberRegistry, *, places: int) -> None:
        self._registry = registry
        self._places = places
        self._is_over = False
        self.jobs: list[int] = []
        self.ends: queue.SimpleQueue[Report | str] = queue.SimpleQueue()
        self.cancelled: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.serve = SERVING

    def thread(self, target: Callable[[int], None], slot: int, *, name: str) -> threading.Thread:
        return threading.Thread(target=target, args=(slot,), name=name, daemon=True)

    def run(self, job: FleetJob, slot: int) -> Report | str:
        self.jobs.append(slot)
        if slot >= self._places:
            return self.cancelled.get()
        incarnation = f"{len(self.jobs)}"
        self._registry.note(replace(self.serve, slot=slot, incarnation=incarnation))
        end = self.ends.get()
        return end if isinstance(end, str) else replace(end, slot=slot, incarnation=incarnation)

    def cancel(self, slot: int) -> None:
        (self.cancelled if slot >= self._places else self.ends).put(CANCELLED)

    def task_slot_count(self) -> int:
        return self._places

    def is_stopped(self) -> bool:
        return self._is_over

    def end_application(self) -> None:
        self._is_over = True
        self.ends.put("SparkContext was shut down")


class ObservedRegistry(MemberRegistry):
    """Calls ``on_stop`` when members are asked to stop."""

    on_stop: Callable[[], object] = bool

    def begin_stop(self) -> None:
        super().begin_stop()
        self.on_stop()


class FleetSetup:
    """A fleet on a fake Spark."""

    def __init__(self, *, size: int, places: int) -> None:
        registry = ObservedRegistry("orders", size, clock=time.monotonic)
        report_server = ReportServer("127.0.0.1", 0, size=2, token="token", on_report=registry.note)
        job = FleetJob(
            name="orders",
            host="127.0.0.1",
            port=report_server.port,
            token="token",
            driver_patience=SOON,
            stop_timeout=timedelta(0),
            work=b"",
        )
        self.registry = registry
        self.spark = FakeSpark(registry, places=places)
        self.fleet = Fleet(self.spark, job, registry, report_server, size=size)


@pytest.fixture(name="make_setup")
def _make_setup() -> Iterator[Callable[..., FleetSetup]]:
    setups = []

    def make(size: int = 1, places: int = 1) -> FleetSetup:
        setups.append(FleetSetup(size=size, places=places))
        return setups[-1]

    yield make
    for setup in setups:
        with suppress(FleetError):
            setup.fleet.stop(timedelta(0))


def test_too_few_task_slots_are_an_error(make_setup, caplog):
    """The error names the slots; placed members are stopped, waiting jobs are cancelled."""
    made = make_setup(size=3, places=1)
    made.registry.on_stop = lambda: made.spark.ends.put(ENDED)
    with pytest.raises(ConfigurationError, match=r"placed 1 of 3 .* room for 1 tasks at a time"):
        made.fleet.start(timedelta(seconds=0.1))

    assert "fleet_members_killed" not in caplog.text
    assert made.fleet.statistics().live_count == 0


def test_a_member_that_never_serves_is_an_error(make_setup):
    """For example because its store hangs: start raises after start_timeout."""
    made = make_setup()
    made.spark.serve = STARTING
    made.registry.on_stop = lambda: made.spark.ends.put(ENDED)
    with pytest.raises(FleetError, match=r"not every processor was ready within 0:00:00\.1"):
        made.fleet.start(timedelta(seconds=0.1))


def test_a_failure_at_the_start_ends_the_fleet(make_setup):
    """start raises the member's error."""
    made = make_setup()
    made.spark.serve = STARTING
    made.spark.ends.put(replace(ENDED, error="SourceUnavailableError: no hub"))
    with pytest.raises(FleetError, match="processor orders-0: SourceUnavailableError: no hub"):
        made.fleet.start(SOON)


def test_a_permanent_error_ends_the_fleet(make_setup):
    """Also later, for example when a replacement starts where a module is missing."""
    made = make_setup()
    made.fleet.start(SOON)
    made.spark.ends.put(replace(ENDED, error="no such module", is_permanent=True))
    with pytest.raises(ConfigurationError, match="no such module"):
        made.fleet.wait(SOON)
    assert made.spark.jobs == [0]


def test_a_job_that_spark_gave_up_is_submitted_again(make_setup):
    """The error is among the warnings, and the other members continue."""
    made = make_setup(size=2, places=2)
    made.fleet.start(SOON)
    made.spark.ends.put("Python worker exited unexpectedly (crashed)")
    until_s = time.monotonic() + 15
    while made.fleet.statistics().restart_count < 1 and time.monotonic() < until_s:
        time.sleep(0.01)
    now = made.fleet.statistics()

    assert (len(made.spark.jobs), now.live_count) == (3, 2)
    assert any("worker exited unexpectedly" in text for text in now.warnings)


def test_a_fleet_ends_with_its_application(make_setup):
    """No further job can be submitted, so wait raises."""
    made = make_setup()
    made.fleet.start(SOON)
    made.spark.end_application()
    with pytest.raises(FleetError, match="the Spark application has ended"):
        made.fleet.wait(SOON)


def test_stop_raises_if_members_had_to_be_killed(make_setup):
    """By Spark or by the worker itself; an orderly stop raises nothing."""
    hanging = make_setup()
    hanging.fleet.start(SOON)
    with pytest.raises(FleetError, match="1 of 1 processors of fleet orders did not stop in time"):
        hanging.fleet.stop(timedelta(seconds=0.1))
    assert hanging.fleet.wait(timedelta(0)), "nothing lives on after stop() has returned"

    killed_itself = make_setup()
    killed_itself.fleet.start(SOON)
    killed_itself.registry.begin_stop()
    killed_itself.registry.note(replace(SERVING, incarnation="1", phase=Phase.STOPPING))
    killed_itself.spark.ends.put("Python worker exited unexpectedly (crashed)")
    with pytest.raises(FleetError, match="did not stop in time and were killed"):
        killed_itself.fleet.stop()

    orderly = make_setup()
    orderly.fleet.start(SOON)
    orderly.spark.ends.put(ENDED)
    orderly.fleet.stop()
    assert orderly.fleet.wait()


def test_stop_raises_if_a_silent_member_had_to_be_killed(make_setup, monkeypatch):
    """The request to stop could not reach it, so it did not even begin to stop."""
    made = make_setup()
    made.fleet.start(SOON)
    monkeypatch.setattr(
        made.registry, "_clock", lambda: time.monotonic() + 1 + members.SILENCE_MAX_S
    )
    with pytest.raises(FleetError, match="1 of 1 processors of fleet orders did not stop in time"):
        made.fleet.stop()


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
    """The message says what to change."""
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
def test_harmless_settings_are_accepted(settings):
    """Spark does not speculate on the only task of a stage; a busy executor is not idle."""
    check_settings(settings)


def test_a_session_of_spark_connect_is_refused():
    """Its driver is not the calling program."""

    class Remote:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"{name} is not supported in Spark Connect")

    with pytest.raises(ConfigurationError, match=r"session of Spark Connect.*by spark-submit"):
        FleetSpark(Remote())
