"""AMQP over WebSockets: whose are accepted, how long they may be silent or behind."""

from typing import Any

import aiohttp
import pytest

from eventproc.emulator import EventHubsEmulator
from eventproc.emulator import _websocket as websocket_module
from eventproc.emulator._amqp.framing import AMQP_HEADER
from eventproc.emulator._amqp.performatives import Begin, Disposition, Open, Transfer
from eventproc.emulator._links import connection as connection_module
from eventproc.emulator._websocket import PATH, SUBPROTOCOLS

from .peer import Peer, connected


@pytest.fixture(name="server", scope="module")
def _server():
    with EventHubsEmulator({"orders": 1}, websocket_port=0) as server:
        yield server


async def header_of(server, **headers):
    """Return what a connection with these headers answers to the header of AMQP."""
    url = f"ws://127.0.0.1:{server.websocket_port}{PATH}"
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(url, protocols=SUBPROTOCOLS, headers=headers) as socket,
    ):
        await socket.send_bytes(AMQP_HEADER)
        return await socket.receive_bytes(timeout=30)


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://localhost:3000"}])
async def test_programs_and_pages_from_this_machine_are_accepted(server, headers):
    """Azure's client for JavaScript runs in browsers, too."""
    assert await header_of(server, **headers) == AMQP_HEADER


async def test_a_page_of_another_site_is_refused(server):
    """Its script could read every event."""
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        await header_of(server, Origin="https://evil.example")


async def test_a_socket_on_which_no_connection_is_opened_is_closed(server, monkeypatch):
    """It would hold a descriptor."""
    monkeypatch.setattr(connection_module, "OPEN_S", 0.1)
    url = f"ws://127.0.0.1:{server.websocket_port}{PATH}"
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(url, protocols=SUBPROTOCOLS) as socket,
    ):
        message = await socket.receive(timeout=30)

    assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}


class SocketStreams:
    """A WebSocket as the reader and the writer of a peer. What is written is sent by ``read``."""

    def __init__(self, socket):
        self._socket = socket
        self._unsent = b""

    def write(self, data):
        """Keep bytes to send."""
        self._unsent += data

    async def read(self, _):
        """Send what was written, and return the next message."""
        if self._unsent:
            data, self._unsent = self._unsent, b""
            await self._socket.send_bytes(data)
        return await self._socket.receive_bytes()


async def test_a_client_that_was_behind_gets_all_events(server, monkeypatch):
    """Its links pause while a megabyte waits for it; here a kilobyte does, so after each batch."""
    monkeypatch.setattr(websocket_module, "WRITE_BUFFER_MAX", 1000)
    async with connected(server.port) as publisher:
        await publisher.send_to("orders/Partitions/0")
        for number in range(99):
            publisher.transfer(bytes(10_000), number, settled=True)
        publisher.transfer(b"last", 99)
        await publisher.next(Disposition)
    url = f"ws://127.0.0.1:{server.websocket_port}{PATH}"
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(url, protocols=SUBPROTOCOLS) as socket,
    ):
        streams: Any = SocketStreams(socket)
        peer = Peer(streams, streams)
        peer.writer.write(AMQP_HEADER)
        peer.write(Open("peer"), Begin(None, 0, 10_000, 10_000))
        await peer.receive_from("orders/ConsumerGroups/$Default/Partitions/0", credit=1000)
        ids = [(await peer.next(Transfer))[0].delivery_id for _ in range(100)]

    assert ids == list(range(100))
