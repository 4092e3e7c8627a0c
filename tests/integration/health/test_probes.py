"""Probes like those of a kubelet restart what hangs, and nothing else."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator
from tests.integration.health.kubelet import FAILURE_THRESHOLD, PERIOD_S, Pod

HANDLER = """
import asyncio, os, time
from eventproc import PartitionHandler

class OrderHandler(PartitionHandler):
    async def process_event(self, context, event):
        while os.path.exists("hang"):
            await asyncio.sleep(0.1)
        try:
            os.rename("block", "blocked")
        except FileNotFoundError:
            pass
        else:
            time.sleep(600)
        with open("handled", "a") as file:
            file.write(event.body_as_str() + "\\n")
"""

OUTAGE_S = 20
"""Longer than the leases, than ``/live`` allows a thread to be silent, and than all failures of a
probe take."""

LIMIT_S = 120


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for what other processes do; fail with *what* if they do not."""
    end_s = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end_s:
            pytest.fail(f"not within {LIMIT_S} s: {what}")
        time.sleep(0.1)


class Fleet:
    """Three pods that share six partitions."""

    def __init__(self, stack: ExitStack, folder: Path, storage: str) -> None:
        (folder / "handlers.py").write_text(HANDLER, "utf-8")
        self.folder = folder
        self.emulator = stack.enter_context(EventHubsEmulator({"orders": 6}))
        self._hub = self.emulator.connection_string_for("orders")
        self._published = 0
        env = os.environ | {
            "EVENTPROC_CONNECTION_STRING": self.emulator.connection_string,
            "EVENTPROC_STORAGE_CONNECTION_STRING": storage,
        }
        arguments = (
            *("run", "handlers:OrderHandler", "--eventhub", "orders", "--store", "blob:probes"),
            *("--create-container", "--interval", "1s", "--expiration", "5s"),
            *("--stall-timeout", "3s", "--shutdown-timeout", "5s"),
        )
        self.pods = []
        for name in ("a", "b", "c"):
            pod = Pod(name, arguments, folder=folder, env=env)
            stack.callback(pod.close)
            self.pods.append(pod)

    def publish(self) -> None:
        """Publish an event to each partition."""
        with EventHubProducerClient.from_connection_string(self._hub) as client:
            for partition_id in self.emulator.partition_ids("orders"):
                body = str(self._published).encode()
                client.send_batch([EventData(body)], partition_id=partition_id)
                self._published += 1

    def restarts(self) -> list[int]:
        """How often each pod was restarted."""
        return [len(pod.restarts) for pod in self.pods]

    def is_ready(self) -> bool:
        """Whether each pod serves its share."""
        answers = [pod.ask("/ready") for pod in self.pods]
        entries = [pod.ask("/partitions")[1]["processors"][0] for pod in self.pods]
        owned = [len(entry["partitions"]) for entry in entries]
        return all(status == 200 for status, _ in answers) and owned == [2, 2, 2]

    def settle(self, what: str) -> None:
        """Wait until every pod serves its share and every event was handled."""

        def is_settled() -> bool:
            try:
                return self.is_ready() and self._is_all_handled()
            except (TypeError, LookupError):  # A pod gave no answer.
                return False

        until(is_settled, f"all served and handled {what}")

    def _is_all_handled(self) -> bool:
        file = self.folder / "handled"
        handled = set(file.read_text().split()) if file.exists() else set()
        return len(handled) == self._published


@pytest.fixture(name="fleet")
def _fleet(azurite, tmp_path) -> Iterator[tuple[Fleet, object]]:
    with ExitStack() as stack:
        yield Fleet(stack, tmp_path, azurite.connection_string), azurite


@pytest.mark.long
def test_probes_restart_what_hangs_and_nothing_else(fleet):
    """Outages of store and hub, a short freeze and a call that hangs restart no pod; a long freeze
    and a blocked event loop restart theirs. No event is lost."""
    pods, azurite = fleet
    a, b, _ = pods.pods
    pods.publish()
    pods.settle("at the start")

    azurite.pause()
    pods.publish()
    until(lambda: a.ask("/ready")[0] == 503, "not ready without a lease")
    time.sleep(OUTAGE_S)
    during_store_outage = pods.restarts()
    azurite.resume()
    pods.settle("after the store's outage")

    pods.emulator.stop()
    time.sleep(OUTAGE_S)
    pods.emulator.start()
    pods.publish()
    pods.settle("after the hub's outage")
    during_hub_outage = pods.restarts()

    (pods.folder / "hang").touch()
    pods.publish()
    until(
        lambda: {pod.ask("/partitions")[0] for pod in pods.pods} == {503},
        "stalled partitions are red",
    )
    time.sleep(FAILURE_THRESHOLD * PERIOD_S)
    live = [pod.ask("/live")[0] for pod in pods.pods]
    (pods.folder / "hang").unlink()
    pods.settle("after the calls that hang")
    during_hang = pods.restarts()

    a.process.send_signal(signal.SIGSTOP)
    time.sleep(PERIOD_S)
    a.process.send_signal(signal.SIGCONT)
    pods.settle("after a short freeze")
    during_short_freeze = pods.restarts()

    b.process.send_signal(signal.SIGSTOP)
    until(lambda: b.restarts, "the frozen pod is restarted")
    pods.publish()
    pods.settle("after a long freeze")
    during_long_freeze = pods.restarts()

    (pods.folder / "block").touch()
    pods.publish()
    until(lambda: sum(pods.restarts()) == 2, "the blocked pod is restarted")
    reason = next(pod.restarts[-1] for pod in pods.pods if "503" in str(pod.restarts))
    pods.publish()
    pods.settle("after the block")

    assert during_store_outage == [0, 0, 0]
    assert during_hub_outage == [0, 0, 0]
    assert (during_hang, live) == ([0, 0, 0], [200, 200, 200])
    assert during_short_freeze == [0, 0, 0]
    assert during_long_freeze == [0, 1, 0]
    assert reason.startswith("503: ")
    assert "handlers.py" in reason
    assert sum(pods.restarts()) == 2
