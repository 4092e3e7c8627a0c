"""When a connection sends heartbeats."""

import asyncio
from itertools import pairwise

import pytest

from eventproc.emulator import EmulatorConfiguration, EmulatorServer, hubs_of
from eventproc.emulator._amqp.framing import AMQP_HEADER, encode_frame
from eventproc.emulator._amqp.performatives import Open
from eventproc.emulator._links.connection import Connection
from eventproc.testing._virtual_time import run_virtual


class RecordingTransport(asyncio.Transport):
    """Notes when something is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written_at_s: list[float] = []

    def write(self, data: object) -> None:
        """Note the time."""
        self.written_at_s.append(asyncio.get_running_loop().time())

    def is_closing(self) -> bool:
        """It stays open."""
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""


@pytest.mark.parametrize("idle_s", [1, 10, 100, 1000])
def test_a_client_hears_something_before_its_own_time_out(idle_s):
    """From the beginning, whether that time-out is shorter or longer than the emulator's."""

    async def scenario() -> list[float]:
        now_s = asyncio.get_running_loop().time
        transport = RecordingTransport()
        connection = Connection(EmulatorServer(EmulatorConfiguration(hubs=hubs_of({"orders": 1}))))
        connection.connection_made(transport)
        peer = Open("peer", "127.0.0.1", idle_time_out=1000 * idle_s)
        connection.data_received(AMQP_HEADER + encode_frame(peer.described()))
        begun_at_s = now_s()
        for _ in range(30):
            await asyncio.sleep(idle_s / 10)
            connection.data_received(encode_frame(b""))
        connection.connection_lost(None)
        return [begun_at_s, *transport.written_at_s, now_s()]

    assert max(later - former for former, later in pairwise(run_virtual(scenario()))) < idle_s
