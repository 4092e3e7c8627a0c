"""``--workers N --http PORT``: the supervisor's endpoint, with real workers behind it."""

import json
import os
import signal
import socket
import time
from datetime import timedelta
from textwrap import dedent

import pytest
from prometheus_client.parser import text_string_to_metric_families

from eventproc._base.http.address import Answer, parse_address
from eventproc._base.http.client import fetch

HANDLER = """
    from eventproc import PartitionHandler

    class Count(PartitionHandler):
        async def process_event(self, context, event):
            pass
"""
HERE = ("--eventhub", "orders", "--store", "sqlite:group.db", "--owner-id", "host")
FAST = ("--interval", "1s", "--expiration", "6s")
TIMEOUT_S = 60
WITHIN = timedelta(seconds=20)


@pytest.fixture(name="supervisor")
def _supervisor(command, orders, tmp_path):
    """Start a supervisor of two workers."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    return command.start(
        *("run", "shop:Count", *HERE, *FAST, "--workers", "2", "--http", "0"),
        EVENTPROC_CONNECTION_STRING=orders.connection_string,
    )


@pytest.fixture(name="silent_hub")
def _silent_hub():
    """Yield the connection string of a hub that lets clients connect, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        port = listener.getsockname()[1]
        yield (
            f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=a;SharedAccessKey=b;"
            "UseDevelopmentEmulator=true;"
        )


class Endpoint:
    """The supervisor's endpoint, and what its log has shown."""

    def __init__(self, supervisor) -> None:
        self._log = supervisor.stderr
        self.pids: dict[int, int] = {}
        self._address = parse_address(self._until("http_server_started")["address"], "--http")

    def _until(self, event):
        while True:
            entry = json.loads(self._log.readline())
            if entry["event"] == "worker_started":
                self.pids[entry["worker"]] = entry["pid"]
            if entry["event"] == event and entry["logger"] == "eventproc.workers":
                return entry

    def await_starts(self, count):
        """Read the log until this many further processes have started."""
        for _ in range(count):
            self._until("worker_started")

    async def ask(self, path) -> Answer:
        """Return the answer to this path."""
        answer = await fetch(self._address, path, WITHIN)
        assert answer is not None
        return answer

    async def wait(self, path, status):
        """Wait until the answer has this status; return its processors by worker."""
        until_s = time.monotonic() + TIMEOUT_S
        while (answer := await self.ask(path)).status != status:
            assert time.monotonic() < until_s, answer
        assert isinstance(answer.body, dict)
        return {entry["worker"]: entry for entry in answer.body["processors"]}


async def test_one_endpoint_answers_for_all_workers(supervisor):
    """Each path has both processors, and the metrics of both."""
    endpoint = Endpoint(supervisor)
    endpoint.await_starts(2)
    live_while_starting = await endpoint.ask("/live")
    ready = await endpoint.wait("/ready", 200)
    partitions = await endpoint.wait("/partitions", 200)
    status = await endpoint.wait("/status", 200)
    text = (await endpoint.ask("/metrics")).body
    assert isinstance(text, str)
    workers = {
        sample.labels["worker"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("eventproc_")
    }

    assert live_while_starting.status == 200
    assert {number: entry["owner_id"] for number, entry in ready.items()} == {
        0: "host-0",
        1: "host-1",
    }
    assert {entry["pid"] for entry in status.values()} == set(endpoint.pids.values())
    assert set(partitions) == {0, 1}
    assert workers == {"0", "1"}


async def test_ready_says_what_a_start_waits_for(command, silent_hub, tmp_path):
    """First for the code to be loaded, which the worker cannot say; then the worker says it."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    supervisor = command.start(
        *("run", "shop:Count", *HERE, *FAST, "--workers", "2", "--http", "0"),
        EVENTPROC_CONNECTION_STRING=silent_hub,
    )
    endpoint = Endpoint(supervisor)
    endpoint.await_starts(2)
    reasons: list[str] = []
    until_s = time.monotonic() + TIMEOUT_S
    while not any("waits for the hub" in reason for reason in reasons):
        assert time.monotonic() < until_s, reasons
        body = (await endpoint.ask("/ready")).body
        assert isinstance(body, dict)
        reasons = [reason for entry in body["processors"] for reason in entry["reasons"]]

    assert all(reason.startswith(("starting: ", "the process ended")) for reason in reasons)


@pytest.mark.long
async def test_a_worker_that_is_started_again_is_live_and_one_that_is_frozen_is_not(supervisor):
    """Only the second one needs help from outside."""
    endpoint = Endpoint(supervisor)
    endpoint.await_starts(2)
    await endpoint.wait("/ready", 200)
    os.kill(endpoint.pids[1], signal.SIGKILL)
    not_ready = await endpoint.wait("/ready", 503)
    while_away = (await endpoint.ask("/live")).status
    await endpoint.wait("/ready", 200)
    endpoint.await_starts(1)
    os.kill(endpoint.pids[0], signal.SIGSTOP)
    frozen = await endpoint.wait("/live", 503)
    os.kill(endpoint.pids[0], signal.SIGCONT)
    await endpoint.wait("/live", 200)

    assert (not_ready[0]["ok"], not_ready[1]["ok"], while_away) == (True, False, 200)
    assert (frozen[0]["reasons"], frozen[1]["ok"]) == (["no answer within 2 s"], True)


def test_an_address_that_is_taken_is_refused_before_any_worker_starts(
    command, supervisor, tmp_path
):
    """With one message, in the words of the option."""
    taken = Endpoint(supervisor)._address
    code, _, err = command.run(
        *("run", "shop:Count", *HERE, "--workers", "2", "--http", taken),
        EVENTPROC_CONNECTION_STRING="Endpoint=sb://127.0.0.1;SharedAccessKeyName=a;"
        "SharedAccessKey=b;UseDevelopmentEmulator=true;",
    )

    assert code == 2
    assert err.splitlines() == [
        f"eventproc: --http {taken} cannot be listened on: another process listens there already"
    ]
