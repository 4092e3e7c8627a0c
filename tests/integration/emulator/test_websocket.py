"""AMQP over WebSockets: whose are accepted, and how long they may be silent."""

import aiohttp
import pytest

from eventproc.emulator import EventHubsEmulator
from eventproc.emulator._amqp.framing import AMQP_HEADER
from eventproc.emulator._links import connection as connection_module
from eventproc.emulator._websocket import PATH, SUBPROTOCOLS


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
