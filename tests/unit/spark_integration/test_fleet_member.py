"""A member of a fleet, without Spark, at a real desk: here, and in a process of its own."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
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
from spark_integration.fleet_desk import FleetDesk
from spark_integration.fleet_order import FleetOrder, FleetWork
from spark_integration.fleet_status import Report
from spark_integration.fleet_store import LateStore
from spark_integration.fleet_worker import FleetSeat

HUB = MemoryHub(2)
ACCOUNT = MemoryAccount()
PATIENCE_S = 15.0
"""What takes longer than this never ends."""


def make_source(options: EventHubOptions) -> MemoryEventSource:
    """Stand for a recipe of a user's."""
    assert options.prefetch == 7
    return MemoryEventSource(HUB)


@asynccontextmanager
async def make_store() -> AsyncIterator[MemoryCheckpointStore]:
    """Stand for one that has a credential to close."""
    async with MemoryCheckpointStore(ACCOUNT) as store:
        yield store


class Failing(PartitionHandler):
    """Takes nothing."""

    async def process_events(self, context, events):
        raise RuntimeError("out of paper")


def work(**changes: object) -> bytes:
    """Return what a member is made from."""
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


def order(port: int, *, stop_timeout_s: float = 30, **changes: object) -> FleetOrder:
    """Return what a member is told."""
    return FleetOrder(
        name="orders",
        host="127.0.0.1",
        port=port,
        token="token",
        driver_patience=timedelta(seconds=1.5),
        stop_timeout=timedelta(seconds=stop_timeout_s),
        work=work(**changes),
    )


class Stand:
    """A desk that keeps reports and acts on them."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.on_report: Callable[[Report], object] = lambda _report: None
        self.end_process: Callable[[], None] | None = None
        self.desk = FleetDesk("127.0.0.1", 0, token="token", on_report=self._take)
        self._is_overdue = False

    def _take(self, report: Report) -> bool:
        self.reports.append(report)
        self.on_report(report)
        return True

    def serve(self, **changes: Any) -> Report:
        seat = FleetSeat(order(self.desk.port, **changes), 3, end_process=self.end_process)
        deadline = threading.Timer(PATIENCE_S, self._end)
        deadline.start()
        try:
            last = seat.serve()
        finally:
            deadline.cancel()
        assert not self._is_overdue, "it had to be ended: nothing else made it stop"
        return last

    def _end(self) -> None:
        self._is_overdue = True
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(name="stand")
def _stand() -> Iterator[Stand]:
    stand = Stand()
    yield stand
    stand.desk.close()


def is_serving(report: Report) -> bool:
    """Whether it owns everything and has tried its handler."""
    statistics = report.statistics
    return statistics is not None and statistics.tally.handler_error_count > 0


def test_a_member_serves_until_it_is_told_to_stop(stand):
    """It says where it stands, what goes wrong, and gives everything back."""
    HUB.publish(b"paper", partition_id="0")
    stand.on_report = lambda report: is_serving(report) and stand.desk.tell_stop()

    last = stand.serve()

    assert (last.phase, last.error, last.is_hopeless) == (Phase.ENDED, None, False)
    assert {report.phase for report in stand.reports} >= {Phase.STARTING, Phase.SERVING}
    assert {report.slot for report in stand.reports} == {3}
    told = [warning for report in stand.reports for warning in report.warnings]
    assert any("handler_failed" in warning and "out of paper" in warning for warning in told)
    assert last.statistics is not None
    assert (last.statistics.owner_id, last.statistics.owned) == ("orders-3", ())
    assert last.statistics.tally.received_count, "counts outlive the processor"


def test_a_member_that_starts_when_it_should_stop_claims_nothing(stand):
    """Spark may place it late."""
    stand.desk.tell_stop()
    last = stand.serve()

    assert (last.phase, last.error) == (Phase.ENDED, None)
    assert last.statistics is None or not last.statistics.claim_count


def test_a_member_stops_when_its_driver_is_out_of_reach(stand):
    """Nobody is left who could ever tell it to."""
    stand.on_report = lambda report: is_serving(report) and stand.desk.close()
    HUB.publish(b"paper", partition_id="0")
    last = stand.serve()

    assert last.error == "it had to stop: the driver is out of reach"
    assert not last.is_hopeless


class Blocking(PartitionHandler):
    """Blocks the event loop until it is released."""

    entered = threading.Event()
    released = threading.Event()
    gave_up = threading.Event()

    async def process_events(self, context, events):
        self.entered.set()
        give_up_at_s = time.monotonic() + 30
        while not self.released.is_set():
            if time.monotonic() > give_up_at_s:
                self.gave_up.set()
                break


def is_blocked(report: Report) -> bool:
    """Whether that handler keeps its loop from anything else; a start may be slow, too."""
    return Blocking.entered.is_set() and report.age_seconds > 0.2


@pytest.mark.parametrize("way", ["told", "unreachable", "SIGTERM"])
def test_a_member_that_does_not_stop_ends_its_process(stand, way):
    """Its handler blocks all that it could hear with, yet it would renew its leases for ever."""
    for event in (Blocking.entered, Blocking.released, Blocking.gave_up):
        event.clear()
    ended = threading.Event()

    def on_report(report: Report) -> None:
        if is_blocked(report) and report.phase is not Phase.STOPPING:
            match way:
                case "told":
                    stand.desk.tell_stop()
                case "unreachable":
                    stand.desk.close()
                case _:
                    os.kill(os.getpid(), signal.SIGTERM)

    def end_process() -> None:
        ended.set()
        Blocking.released.set()

    HUB.publish(b"paper", partition_id="0")
    stand.on_report = on_report
    stand.end_process = end_process
    stand.serve(handler=f"{__name__}:Blocking", stop_timeout_s=0.5)

    assert ended.is_set()
    assert not Blocking.gave_up.is_set()


ORPHAN = """
import os
from spark_integration.fleet_worker import FleetSeat
from tests.unit.spark_integration import test_fleet_member as parts

if os.fork():
    os.wait()
else:
    stand = parts.Stand()
    stand.on_report = lambda report: parts.is_blocked(report) and print("blocked", flush=True)
    parts.HUB.publish(b"paper", partition_id="0")
    handler = "tests.unit.spark_integration.test_fleet_member:Blocking"
    FleetSeat(parts.order(stand.desk.port, handler=handler, stop_timeout_s=0.5), 3).serve()
"""


def test_an_orphan_ends_whatever_its_handler_does():
    """Spark's daemon, its parent, dies without a word; the driver is still there."""
    root = Path(__file__).parents[3]
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
            # To its end: nobody is left who could write.
            _, said = parent.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(parent.pid, signal.SIGKILL)
            raise AssertionError("the orphan lives on") from None

    assert b"in process_events" in said, "where it hung"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_member_stops_on_a_signal(stand, number):
    """SIGHUP is how Spark's daemon tells that the executor is gone."""

    def on_report(report):
        if report.phase is Phase.SERVING:
            os.kill(os.getpid(), number)

    stand.on_report = on_report
    last = stand.serve()

    assert last.error == f"it had to stop: {number.name}"


def test_what_can_never_work_is_told_as_such(stand):
    """So that nobody tries it again and again."""
    last = stand.serve(handler="nowhere:Handler")

    assert last.is_hopeless
    assert last.error is not None
    assert "'nowhere' cannot be imported here" in last.error


def test_a_hub_that_is_away_is_no_reason_to_give_up(stand, monkeypatch):
    """The driver tries again."""
    monkeypatch.setattr(HUB, "_is_out", True)
    last = stand.serve()

    assert not last.is_hopeless
    assert last.error is not None
    assert last.error.startswith("SourceUnavailableError: ")


def test_strangers_get_no_answer_and_disturb_nobody(stand):
    """A port scanner, say."""
    with socket.create_connection(("127.0.0.1", stand.desk.port)) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert caller.recv(100) == b""
    assert not stand.reports


async def test_a_late_store_is_the_store_it_will_be():
    """It keeps every promise of the port."""
    account = MemoryAccount()

    @asynccontextmanager
    async def manager() -> AsyncIterator[MemoryCheckpointStore]:
        async with MemoryCheckpointStore(account) as store:
            yield store

    await check_checkpoint_store(lambda: LateStore(manager()), records=10, rounds=2)
