"""Reports of a fleet's members, and the driver's registry of them, without Spark."""

import signal
import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from eventproc.errors import ConfigurationError
from eventproc.models._statistics import DeliveryCounters, ProcessorStatistics, PumpStatistics
from spark_integration import Phase
from spark_integration._fleet import report_client
from spark_integration._fleet.fleet import Fleet
from spark_integration._fleet.job import FleetJob
from spark_integration._fleet.jobs import FleetSpark
from spark_integration._fleet.members import SILENCE_MAX_S, MemberRegistry
from spark_integration._fleet.report_client import ReportClient
from spark_integration._fleet.report_server import GO
from spark_integration._fleet.statistics import Report, decode, encode

STATISTICS = ProcessorStatistics(
    owner_id="orders-0",
    owned=("0", "1"),
    pumps=(
        PumpStatistics(
            partition_id="0",
            sequence_number=41,
            checkpointed_sequence_number=None,
            lag=3,
            lag_seconds=0.5,
            checkpoint_age_seconds=0.0,
            is_paused=False,
            is_stalled=False,
            counters=DeliveryCounters(handled_count=7),
        ),
    ),
    stopped=(),
    counters=DeliveryCounters(received_count=8, handled_count=7),
    is_balanced=True,
    unplaced_count=0,
    cycle_count=3,
    cycle_seconds=0.01,
    claim_count=2,
    steal_count=0,
    hand_over_count=0,
    lost_count=0,
    conflict_count=0,
    ownership_write_count=2,
    lease_margin_seconds=None,
)

REPORT = Report(
    slot=0,
    incarnation="a",
    host="here",
    process_id=4711,
    phase=Phase.SERVING,
    statistics=STATISTICS,
    warnings=("handler_failed error=no",),
)


def test_a_report_survives_the_wire():
    """Encoding and decoding a report gives an equal report, also of a partition that is paused."""
    paused = replace(
        STATISTICS.pumps[0],
        is_paused=True,
        paused_since=datetime(2026, 1, 31, 8, tzinfo=UTC),
        pause_reason="INC-1",
    )
    pausing = replace(REPORT, statistics=replace(STATISTICS, pumps=(paused,)))
    ended = Report(
        slot=1, incarnation="b", host="h", process_id=1, phase=Phase.ENDED, error="no", warnings=()
    )

    assert decode(encode(REPORT, "token"), "token") == REPORT
    assert decode(encode(ended, "token"), "token") == ended
    assert decode(encode(pausing, "token"), "token") == pausing


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"[]\n",
        b"{}\n",
        b"token\n",
        b"token {}\n",
        b"token []\n",
        b"token 1e999\n",
        b"token " + b"[" * 100_000,
        b"token \xff\n",
        encode(REPORT, "another"),
        encode(REPORT, "token and more"),
        encode(REPORT, "token").replace(b"serving", b"dancing"),
    ],
)
def test_a_line_that_is_not_a_report_is_refused(line):
    """Any program that reaches the driver's port can send a line."""
    with pytest.raises(ValueError):  # noqa: PT011 - each way has words of its own
        decode(line, "token")


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_handled_counts_include_former_incarnations():
    """Events that a member handled before it died stay counted after its restart."""
    registry = MemberRegistry("orders", 2, clock=Clock())
    registry.note(REPORT)
    registry.note(REPORT)
    registry.note(replace(REPORT, incarnation="b"))
    registry.note(replace(REPORT, incarnation="c", phase=Phase.STARTING, statistics=None))
    now = registry.statistics()

    assert now.handled_count == 14
    assert now.restart_count == 2
    assert [member.phase for member in now.members] == [Phase.STARTING, Phase.WAITING]
    assert str(now) == (
        "fleet orders: 0 of 2 processors live, 0 partitions, 14 events handled, lag unknown, "
        "2 restarts"
    )


def test_a_report_of_a_replaced_incarnation_is_rejected():
    """An executor that Spark declared lost may still run; its processor is asked to stop."""
    registry = MemberRegistry("orders", 1, clock=Clock())

    assert registry.note(REPORT)
    assert registry.note(replace(REPORT, incarnation="b", process_id=2))
    assert not registry.note(REPORT)
    (member,) = registry.statistics().members
    assert (member.process_id, member.restart_count) == (2, 1)


def test_a_member_without_recent_reports_is_not_live():
    """For example on a frozen executor, or behind a broken network."""
    clock = Clock()
    registry = MemberRegistry("orders", 1, clock=clock)
    registry.note(REPORT)
    before = registry.statistics()
    clock.now_s += SILENCE_MAX_S

    assert (before.live_count, before.owned_count, before.lag) == (1, 2, 3)
    assert registry.statistics().live_count == 0
    assert registry.statistics().lag is None


def test_a_member_whose_loop_is_blocked_is_not_live():
    """Its client thread still reports, but with old statistics."""
    registry = MemberRegistry("orders", 1, clock=Clock())
    registry.note(replace(REPORT, age_seconds=SILENCE_MAX_S))

    assert registry.statistics().live_count == 0
    assert registry.silent_slots() == []


def test_a_member_that_died_while_it_stopped_was_cut_short():
    """A member that died before the stop, or sent its last report, was not."""
    registry = MemberRegistry("orders", 3, clock=Clock())
    stopping = replace(REPORT, phase=Phase.STOPPING)
    registry.note(replace(stopping, slot=2))
    registry.note(replace(REPORT, slot=2, incarnation="b"))
    registry.begin_stop()
    registry.note(stopping)
    registry.note(replace(stopping, slot=1))
    registry.note(replace(stopping, slot=2, incarnation="b"))
    registry.note(replace(stopping, incarnation="b"))
    for slot, incarnation in enumerate("bab"):
        registry.note(replace(REPORT, slot=slot, incarnation=incarnation, phase=Phase.ENDED))

    assert registry.cut_short() == [0]


def test_a_slot_without_recent_reports_is_silent():
    """Its job may be waiting for a core again, so a stop cancels it."""
    clock = Clock()
    registry = MemberRegistry("orders", 2, clock=clock)
    registry.note(REPORT)
    assert registry.silent_slots() == [1]
    clock.now_s += SILENCE_MAX_S + 1
    registry.note(replace(REPORT, slot=1))

    assert registry.silent_slots() == [0]


def test_errors_appear_in_the_statistics():
    """The error of a last report, and that of a task without one."""
    registry = MemberRegistry("orders", 2, clock=Clock())
    registry.note(replace(REPORT, phase=Phase.ENDED, error="the store is gone"))
    registry.note_failure(1, "worker crashed")
    now = registry.statistics()

    assert [member.error for member in now.members] == ["the store is gone", "worker crashed"]
    assert now.warnings == (
        "orders-0: handler_failed error=no",
        "orders-0: the store is gone",
        "orders-1: worker crashed",
    )


def test_a_report_that_arrives_after_the_last_one_is_ignored():
    """The last report comes through Spark and may overtake one sent to the report server."""
    registry = MemberRegistry("orders", 1, clock=Clock())
    registry.note(REPORT)
    registry.begin_stop()
    registry.note(replace(REPORT, phase=Phase.ENDED))

    assert not registry.note(replace(REPORT, phase=Phase.STOPPING))
    assert registry.cut_short() == []
    (member,) = registry.statistics().members
    assert member.phase is Phase.ENDED


def job_of(server: socket.socket) -> FleetJob:
    """The job of members that report to this server."""
    return FleetJob(
        name="orders",
        host="127.0.0.1",
        port=server.getsockname()[1],
        token="token",
        driver_patience=timedelta(seconds=15),
        stop_timeout=timedelta(seconds=15),
        work=b"",
    )


def test_the_patience_with_a_driver_begins_when_a_report_fails():
    """However long the member has run, or was frozen, a connection that breaks is opened again."""
    at, stops = SimpleNamespace(s=0.0), list[str]()

    def report() -> Report:
        at.s += 10 if at.s < 30 else 180
        return REPORT

    with socket.create_server(("127.0.0.1", 0)) as server:
        job = job_of(server)
        with ReportClient(
            job, report=report, on_answer=lambda _: None, on_stop=stops.append, clock=lambda: at.s
        ):
            first, _ = server.accept()
            with first, first.makefile("rb") as reports:
                for _ in range(3):
                    reports.readline()
                    first.sendall(GO)
                reports.readline()
            second, _ = server.accept()
            stops_before_the_second = [*stops]
            second.close()

    assert stops_before_the_second == []


def test_the_patience_with_a_driver_begins_anew_after_an_answer(monkeypatch):
    """Two short breaks, hours apart, are not one long one."""
    monkeypatch.setattr(report_client, "RETRY_S", 0.01)
    at, stops = SimpleNamespace(s=0.0), list[str]()

    def report() -> Report:
        at.s += 3600
        return REPORT

    with socket.create_server(("127.0.0.1", 0)) as server:
        with ReportClient(
            job_of(server),
            report=report,
            on_answer=lambda _: None,
            on_stop=stops.append,
            clock=lambda: at.s,
        ):
            for answers in ([], [GO]):
                connection, _ = server.accept()
                with connection, connection.makefile("rb") as reports:
                    for answer in answers:
                        reports.readline()
                        connection.sendall(answer)
                    reports.readline()
            last, _ = server.accept()
            stops_at_the_last = [*stops]
            server.close()  # So the client does not wait for an answer to its next connection.
            last.close()

    assert stops_at_the_last == []


class FakeSpark:
    """Runs jobs until they are cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def thread(self, target, slot, *, name):
        return threading.Thread(target=target, args=(slot,), name=name, daemon=True)

    def run(self, job, slot):
        self.cancelled.wait()
        return "cancelled"

    def cancel(self, slot):
        self.cancelled.set()

    def detach_sigint(self):
        return lambda: None

    def is_stopped(self):
        return False


class Serving(MemberRegistry):
    """A registry whose processors serve, and do not report any more."""

    def wait_until_all_serve(self, timeout_s, is_over):
        return True

    def silent_slots(self):
        return [0]


class Interrupted(Serving):
    """A registry whose driver gets Ctrl-C while it waits."""

    def wait_until_all_serve(self, timeout_s, is_over):
        raise KeyboardInterrupt


def fleet_of(spark: Any, registry: MemberRegistry) -> Fleet:
    """A fleet of one processor."""
    server: Any = SimpleNamespace(request_stop=lambda: None, close=lambda: None)
    job = FleetJob(
        name="orders",
        host="here",
        port=1,
        token="secret",
        driver_patience=timedelta(seconds=1),
        stop_timeout=timedelta(seconds=1),
        work=b"",
    )
    return Fleet(spark, job, registry, server, size=1)


def test_progress_is_reported_after_an_error_of_the_function_too(caplog):
    """A push of metrics may time out once."""
    calls = threading.Semaphore(0)
    fleet = fleet_of(FakeSpark(), Serving("orders", 1, clock=time.monotonic))
    fleet.start(timedelta(seconds=60))

    def show(_):
        calls.release()
        raise TimeoutError("no answer")

    fleet.report_progress(timedelta(seconds=0.01), show)

    assert calls.acquire(timeout=30)
    assert calls.acquire(timeout=30)
    assert "fleet_progress_failed" in caplog.text
    fleet.stop()


def test_ctrl_c_while_a_fleet_starts_ends_its_jobs():
    """The caller has no fleet to stop yet."""
    fleet = fleet_of(FakeSpark(), Interrupted("orders", 1, clock=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        fleet.start(timedelta(seconds=60))

    assert fleet.wait(timedelta(0))


def test_ctrl_c_stays_detached_until_the_last_fleet_has_ended():
    """Otherwise PySpark's handler would kill the processors of the others."""

    def of_pyspark(*_):
        """Cancel all jobs."""

    before = signal.signal(signal.SIGINT, of_pyspark)
    try:
        restores = [FleetSpark.detach_sigint(), FleetSpark.detach_sigint()]
        found = [signal.getsignal(signal.SIGINT)]
        for restore in restores:
            restore()
            found.append(signal.getsignal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)

    assert found == [signal.default_int_handler, signal.default_int_handler, of_pyspark]


def fake_session(master: str, task_slots: int) -> Any:
    """A session of Spark at this master, whose executors run so many tasks at a time."""
    manager = SimpleNamespace(defaultResourceProfile=lambda: None)
    core = SimpleNamespace(
        resourceProfileManager=lambda: manager, maxNumConcurrentTasks=lambda _: task_slots
    )
    java = SimpleNamespace(sc=lambda: core)
    settings = SimpleNamespace(get=lambda _, default: default, getAll=list)
    context = SimpleNamespace(
        master=master, applicationId="app", getConf=lambda: settings, _jsc=java
    )
    return SimpleNamespace(_jsc=java, sparkContext=context)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]"])
def test_more_processors_than_a_local_spark_has_cores_are_refused_at_once(master):
    """No executor will come, so the start would wait in vain."""
    spark = FleetSpark(fake_session(master, task_slots=2))
    spark.check(2)

    with pytest.raises(ConfigurationError, match=r"processors is 3, and .* room for 2 tasks"):
        spark.check(3)


@pytest.mark.parametrize("master", ["spark://here:7077", "local-cluster[2,1,1024]", "yarn"])
def test_a_cluster_may_get_more_cores_later(master):
    """Executors come while a fleet starts."""
    FleetSpark(fake_session(master, task_slots=0)).check(3)
