"""An emulator in another process: killed, ended, and controlled over HTTP."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventproc.emulator._amqp.performatives import Disposition, Transfer

from .peer import connected

PROGRAM = Path(__file__).with_name("emulator_process.py")
READ = "orders/ConsumerGroups/$Default/Partitions/0"


@contextmanager
def process(directory, port=0):
    """Yield the process, its port and its health port."""
    with subprocess.Popen(
        [sys.executable, PROGRAM, str(directory), str(port)], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        line = running.stdout.readline().split()
        try:
            yield running, int(line[0]), int(line[1])
        finally:
            running.kill()


def post(port, path):
    """Post to the control endpoint."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=b"{}")
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


async def test_acknowledged_events_survive_a_kill(tmp_path):
    """After SIGKILL in the middle of sending, every acknowledged event is there, in order."""
    with process(tmp_path) as (running, port, _):
        async with connected(port) as peer:
            await peer.send_to("orders/Partitions/0")
            for index in range(500):
                peer.transfer(b"%d" % index, index)
            answered = [(await peer.next(Disposition))[0].first for _ in range(300)]
            running.kill()
            assert await peer.has_ended()
        running.wait()
    with process(tmp_path, port) as (_, same_port, _):
        async with connected(same_port) as peer:
            await peer.receive_from(READ, credit=1000)
            deliveries = [await peer.next(Transfer) for _ in answered]
            bodies = [payload.rpartition(b"\xa0")[2][1:] for _, payload in deliveries]
            await peer.send_to("orders/Partitions/0")
            peer.transfer(b"next", 0)
            await peer.next(Disposition)

    assert port == same_port
    assert bodies == [b"%d" % index for index in answered]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_exit_code_0(tmp_path, number):
    """SIGTERM and SIGINT, also with clients connected."""
    with process(tmp_path) as (running, _, _):
        running.send_signal(number)

        assert running.wait(60) == 0


async def test_faults_can_be_set_over_http(tmp_path):
    """A fault posted to the health port of another process takes effect."""
    with process(tmp_path) as (_, port, health_port):
        async with connected(port) as peer:
            await peer.send_to("orders")
            dropped = await asyncio.to_thread(post, health_port, "/faults/drop-connections")

            assert dropped == {"dropped": 1}
            assert await peer.has_ended()
