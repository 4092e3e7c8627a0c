"""A member of a fleet without Spark, with a real report server: in this process and another."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventProcessorConfig, PartitionHandler
from eventproc.sources.eventhubs import EventHubOptions
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import check_checkpoint_store
from spark_integration import Phase, SourceRecipe, StoreRecipe
from spark_integration._fleet.job import FleetJob, FleetWork
from spark_integration._fleet.report_server import STRANGERS_MAX, ReportServer
from spark_integration._fleet.statistics import Report
from spark_integration._fleet.task import LazyStore, MemberTask

HUB = MemoryHub(2)
ACCOUNT = MemoryAccount()
PATIENCE_S = 15.0
"""Longest time that a test waits."""


def make_source(options: EventHubOptions) -> MemoryEventSource:
    """Make a source, as a user's recipe does."""
    assert options.prefetch == 7
    return MemoryEventSource(HUB)


@asynccontextmanager
async def make_store() -> AsyncIterator[MemoryCheckpointStore]:
    """Yield a store, as a user's recipe with a credential to close does."""
    async with MemoryCheckpointStore(ACCOUNT) as store:
        yield store


class PredecessorIsQuicker(MemoryCheckpointStore):
    """A store in which a live processor of the same owner id writes before each write of another.

    Its member record is all that is seen of it.
    """

    def __init__(self) -> None:
        super().__init__(MemoryAccount())

    async def announce_member(self, group, member):
        await super().announce_member(group, replace(member, incarnation="predecessor"))
        return await super().announce_member(group, member)


class Failing(PartitionHandler):
    """Fails on every event."""

    async def process_events(self, context, events):
        raise RuntimeError("out of paper")


class FailingAtLength(PartitionHandler):
    """Fails on every event, with an error that quotes it."""

    async def process_events(self, context, events):
        raise RuntimeError("out of paper" + "\0" * 1_000_000)


def work(**changes: object) -> bytes:
    """Return pickled ``FleetWork``."""
    given = FleetWork(
        source=SourceRecipe(function=f"{__name__}:make_source"),
        store=StoreRecipe(spec=f"{__name__}:make_store"),
        handler=f"{__name__}:Failing",
        dead_letters=None,
        consumer_group="$Default",
        config=EventProcessorConfig(
            load_balancing_interval=timedelta(seconds=1), ownership_expiration=timedelta(seconds=9)
        ),
        hub_options=EventHubOptions(prefetch=7),
    )
    return pickle.dumps(replace(given, **changes))  # type: ignore[arg-type]


def job(port: int, *, stop_timeout_s: float = 30, **changes: object) -> FleetJob:
    """Return the job that a member gets."""
    return FleetJob(
        name="orders",
        host="127.0.0.1",
        port=port,
        token="token",
        driver_patience=timedelta(seconds=1.5),
        stop_timeout=timedelta(seconds=stop_timeout_s),
        work=work(**changes),
    )


class FakeDriver:
    """A driver: keeps the members' reports and calls ``on_report`` with each."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.on_report: Callable[[Report], object] = lambda _report: None
        self.end_process: Callable[[], None] | None = None
        self.report_server = ReportServer(
            "127.0.0.1", 0, size=2, token="token", on_report=self._take
        )
        self._is_overdue = False
        self._closing: threading.Thread | None = None

    def close_soon(self) -> None:
        """Close the server from one of its own calls."""
        if self._closing is None:
            self._closing = threading.Thread(target=self.report_server.close)
            self._closing.start()

    def close(self) -> None:
        """Close the server, and return when it is closed."""
        if self._closing is not None:
            self._closing.join()
        self.report_server.close()

    def _take(self, report: Report) -> bool:
        self.reports.append(report)
        self.on_report(report)
        return True

    def serve(self, **changes: Any) -> Report:
        member = MemberTask(
            job(self.report_server.port, **changes), 3, end_process=self.end_process
        )
        deadline = threading.Timer(PATIENCE_S, self._end)
        deadline.start()
        try:
            last = member.serve()
        finally:
            deadline.cancel()
        assert not self._is_overdue, "the member did not stop until the test ended it"
        return last

    def _end(self) -> None:
        self._is_overdue = True
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(name="driver")
def _driver() -> Iterator[FakeDriver]:
    driver = FakeDriver()
    yield driver
    driver.close()


def is_serving(report: Report) -> bool:
    """Whether the member's handler has failed at least once."""
    statistics = report.statistics
    return statistics is not None and statistics.counters.handler_error_count > 0


def test_a_member_serves_until_the_driver_requests_a_stop(driver):
    """It reports its phase and warnings, and releases its partitions at the end."""
    HUB.publish(b"paper", partition_id="0")
    driver.on_report = lambda report: is_serving(report) and driver.report_server.request_stop()

    last = driver.serve()

    assert (last.phase, last.error, last.is_permanent) == (Phase.ENDED, None, False)
    assert {report.phase for report in driver.reports} >= {Phase.STARTING, Phase.SERVING}
    assert {report.slot for report in driver.reports} == {3}
    warnings = [warning for report in driver.reports for warning in report.warnings]
    assert any("handler_failed" in warning and "out of paper" in warning for warning in warnings)
    assert last.statistics is not None
    assert (last.statistics.owner_id, last.statistics.owned) == ("orders-3", ())
    assert last.statistics.counters.received_count, "counts outlive the processor"


def test_a_warning_of_a_megabyte_keeps_no_report_from_the_driver(driver):
    """It is cut: the driver refuses a report of several megabytes."""
    HUB.publish(b"paper", partition_id="0")
    driver.on_report = lambda report: is_serving(report) and driver.report_server.request_stop()

    last = driver.serve(handler=f"{__name__}:FailingAtLength")

    assert (last.phase, last.error) == (Phase.ENDED, None)
    warnings = [warning for report in driver.reports for warning in report.warnings]
    assert any("out of paper" in warning for warning in warnings)


def test_a_member_that_starts_after_the_stop_request_claims_nothing(driver):
    """Spark may start its task late."""
    driver.report_server.request_stop()
    last = driver.serve()

    assert (last.phase, last.error) == (Phase.ENDED, None)
    assert last.statistics is None or not last.statistics.claim_count


def test_a_member_stops_when_its_driver_is_out_of_reach(driver):
    """After driver_patience, because the driver could not request a stop any more."""
    driver.on_report = lambda report: is_serving(report) and driver.close_soon()
    HUB.publish(b"paper", partition_id="0")
    last = driver.serve()

    assert last.error == "it had to stop: the driver is unreachable"
    assert not last.is_permanent


class Blocking(PartitionHandler):
    """Blocks the event loop until it is released."""

    entered = threading.Event()
    released = threading.Event()
    timed_out = threading.Event()

    async def process_events(self, context, events):
        self.entered.set()
        give_up_at_s = time.monotonic() + 30
        while not self.released.is_set():
            if time.monotonic() > give_up_at_s:
                self.timed_out.set()
                break


def is_blocked(report: Report) -> bool:
    """Whether the handler blocks the event loop; a slow start does not count."""
    return Blocking.entered.is_set() and report.age_seconds > 0.2


@pytest.mark.parametrize("way", ["requested", "unreachable", "SIGTERM"])
def test_a_member_that_does_not_stop_ends_its_process(driver, way):
    """Its handler blocks the event loop, but its store thread would renew leases for ever."""
    for event in (Blocking.entered, Blocking.released, Blocking.timed_out):
        event.clear()
    ended = threading.Event()

    def on_report(report: Report) -> None:
        if is_blocked(report) and report.phase is not Phase.STOPPING:
            match way:
                case "requested":
                    driver.report_server.request_stop()
                case "unreachable":
                    driver.close_soon()
                case _:
                    os.kill(os.getpid(), signal.SIGTERM)

    def end_process() -> None:
        ended.set()
        Blocking.released.set()

    HUB.publish(b"paper", partition_id="0")
    driver.on_report = on_report
    driver.end_process = end_process
    driver.serve(handler=f"{__name__}:Blocking", stop_timeout_s=0.5)

    assert ended.is_set()
    assert not Blocking.timed_out.is_set()


ORPHAN = """
import os
from spark_integration._fleet.task import MemberTask
from tests.scenarios import test_fleet_member as parts

if os.fork():
    os.wait()
else:
    driver = parts.FakeDriver()
    driver.on_report = lambda report: parts.is_blocked(report) and print("blocked", flush=True)
    parts.HUB.publish(b"paper", partition_id="0")
    handler = "tests.scenarios.test_fleet_member:Blocking"
    job = parts.job(driver.report_server.port, handler=handler, stop_timeout_s=0.5)
    MemberTask(job, 3).serve()
"""


def test_an_orphan_ends_even_if_its_handler_blocks():
    """Its parent, Spark's daemon, dies without sending a signal; the driver is still there."""
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN],
        cwd=root,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline()
        parent.kill()
        try:
            # Until the orphan ends, too: it holds the other end of the pipe.
            _, output = parent.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(parent.pid, signal.SIGKILL)
            raise AssertionError("the orphan lives on") from None

    assert b"in process_events" in output, "where it hung"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_member_stops_on_a_signal(driver, number):
    """Spark's daemon sends SIGHUP when the executor has died."""

    def on_report(report):
        if report.phase is Phase.SERVING:
            os.kill(os.getpid(), number)

    driver.on_report = on_report
    last = driver.serve()

    assert last.error == f"it had to stop: {number.name}"


def test_a_configuration_error_is_reported_as_permanent(driver):
    """So that the driver does not restart the member."""
    last = driver.serve(handler="nowhere:Handler")

    assert last.is_permanent
    assert last.error is not None
    assert "'nowhere' cannot be imported here" in last.error


def test_an_unreachable_hub_is_not_a_permanent_error(driver, monkeypatch):
    """The driver may restart the member."""
    monkeypatch.setattr(HUB, "_is_out", True)
    last = driver.serve()

    assert not last.is_permanent
    assert last.error is not None
    assert last.error.startswith("SourceUnavailableError: ")


def test_a_predecessor_that_still_lives_is_not_a_permanent_error(driver):
    """It may be about to end: the driver restarts the member, and does not end the whole fleet."""
    last = driver.serve(store=StoreRecipe(spec=f"{__name__}:PredecessorIsQuicker"))

    assert not last.is_permanent
    assert last.error is not None
    assert last.error.startswith("DuplicateOwnerError: ")


def test_a_client_without_the_token_gets_no_answer(driver):
    """For example a port scanner; its line does not count as a report."""
    with socket.create_connection(("127.0.0.1", driver.report_server.port)) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert caller.recv(100) == b""
    assert not driver.reports


def test_a_connection_that_is_open_when_the_server_closes_is_no_error_in_the_log(driver, caplog):
    """As that of a member that is late."""
    with socket.create_connection(("127.0.0.1", driver.report_server.port)) as caller:
        caller.sendall(b"token")
        time.sleep(0.1)  # Usually enough for the server to wait for a report.
        driver.close()
        assert caller.recv(100) == b""
    assert caplog.text == ""


async def test_a_lazy_store_passes_the_store_contract():
    """It delegates every operation to the store that its context manager yields."""
    account = MemoryAccount()

    @asynccontextmanager
    async def manager() -> AsyncIterator[MemoryCheckpointStore]:
        async with MemoryCheckpointStore(account) as store:
            yield store

    await check_checkpoint_store(lambda: LazyStore(manager()), records=10, rounds=2)


def test_strangers_are_cut_in_favour_of_new_connections(driver):
    """Members never run into a limit, and the driver keeps its descriptors."""
    address = ("127.0.0.1", driver.report_server.port)
    with ExitStack() as stack:
        strangers = [
            stack.enter_context(socket.create_connection(address, PATIENCE_S))
            for _ in range(STRANGERS_MAX + 5)
        ]
        with socket.create_connection(address, PATIENCE_S) as member:
            member.sendall(b"token " + b"[" * 10 + b"\n")

            assert member.recv(1) == b""
        with suppress(ConnectionResetError):
            assert strangers[0].recv(1) == b""


def test_nothing_is_read_before_the_token(driver):
    """Its connection is closed at the first bytes, however much it would send."""
    address = ("127.0.0.1", driver.report_server.port)
    with socket.create_connection(address, PATIENCE_S) as sender:
        sender.sendall(b"[[[[[")

        assert sender.recv(1) == b""
    with socket.create_connection(address, PATIENCE_S) as member:
        member.sendall(b"token " + b"[" * 100_000 + b"\n")

        assert member.recv(1) == b""
    assert driver.reports == []
