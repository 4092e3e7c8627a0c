"""A server that stops leaves no connection open, whenever the client connects."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest

from eventproc._base.http.address import ListenAddress
from eventproc.emulator._amqp_server import AmqpServer
from eventproc.emulator._control import serving
from eventproc.emulator._hub.configuration import EmulatorConfiguration, HubConfiguration
from tests.servers.lossy_proxy import LossyProxy

TURNS = range(9)
"""Turns of the loop between the connection and the stop: from not accepted to served."""


def amqp_server():
    return AmqpServer(EmulatorConfiguration(hubs=(HubConfiguration("orders"),), port=0))


@asynccontextmanager
async def amqp():
    server = amqp_server()
    await server.start()
    yield server.port
    await server.stop()


@asynccontextmanager
async def control():
    async with serving(amqp_server(), ListenAddress()) as port:
        yield port


@asynccontextmanager
async def proxy():
    async with amqp() as port, LossyProxy(port) as proxy:
        yield proxy.port


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("server", [amqp, control, proxy])
async def test_a_client_that_connects_while_the_server_stops_is_disconnected(server, turns):
    """It sees the end of the connection, in whichever turn of the loop the server stopped."""
    async with server() as port:
        client = socket.create_connection(("127.0.0.1", port), timeout=10)
        for _ in range(turns):
            await asyncio.sleep(0)
    with client:
        try:
            answer = await asyncio.to_thread(client.recv, 1)
        except ConnectionError:
            answer = b""

    assert answer == b""
