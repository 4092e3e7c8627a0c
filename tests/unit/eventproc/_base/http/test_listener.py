"""``Listener``: real sockets, with protocols that count."""

import asyncio
import gc
import logging
import os
import socket
import sys
from contextlib import asynccontextmanager

import pytest

from eventproc._base.http import listener as listener_module
from eventproc._base.http.address import ListenAddress
from eventproc._base.http.listener import Listener

MAX = 4


class Greeting(asyncio.Protocol):
    """Says hello, and is busy once it was asked to be."""

    def __init__(self):
        self.is_busy = False
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        transport.write(b"hello")

    def data_received(self, data):
        assert self.transport is not None
        self.is_busy = True
        self.transport.write(data)


def is_idle(protocol):
    """Whether a connection may be cut."""
    assert isinstance(protocol, Greeting)
    return not protocol.is_busy


class Attempts(logging.Handler):
    """Sets an event after so many records."""

    def __init__(self, count):
        super().__init__()
        self._count = count
        self.were_made = asyncio.Event()

    def emit(self, record):
        self._count -= 1
        if self._count <= 0:
            self.were_made.set()


@pytest.fixture(name="listening")
def _listening():
    @asynccontextmanager
    async def listening(address=ListenAddress()):  # noqa: B008 - a frozen value
        made = []

        def new():
            made.append(Greeting())
            return made[-1]

        listener = Listener(new, connections_max=MAX, is_idle=is_idle)
        bound = await listener.open(address)
        try:
            yield bound
        finally:
            await listener.close()
            for each in made:
                if each.transport is not None:
                    each.transport.abort()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    return listening


class Clients:
    """Connections that are closed at the end of the block."""

    def __init__(self, bound):
        self._bound = bound
        self._writers = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for writer in self._writers:
            writer.close()
        await asyncio.sleep(0)

    async def connect(self):
        """Return a reader and a writer."""
        if self._bound.path:
            found = await asyncio.open_unix_connection(self._bound.path)
        else:
            found = await asyncio.open_connection(self._bound.host, self._bound.port)
        self._writers.append(found[1])
        return found

    async def greeted(self):
        """Return a connection that the server has answered on."""
        reader, writer = await self.connect()
        assert await asyncio.wait_for(reader.readexactly(5), 30) == b"hello"
        return reader, writer


async def rest(reader):
    """Return what else comes until the connection is closed."""
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_a_new_client_is_served_although_idle_ones_hold_every_connection(
    listening, tmp_path, kind
):
    """The oldest idle one is cut for it; one in use stays."""
    path = str(tmp_path / "a.sock") if kind == "unix" else ""
    async with listening(ListenAddress(path=path)) as bound, Clients(bound) as clients:
        busy_reader, busy = await clients.greeted()
        busy.write(b"work")
        assert await busy_reader.readexactly(4) == b"work"
        idle = [(await clients.greeted())[0] for _ in range(MAX)]
        ends = [await rest(reader) for reader in idle[:1]]
        busy.write(b"more")

        assert ends == [b""]
        assert await asyncio.wait_for(busy_reader.readexactly(4), 30) == b"more"
        assert not [reader for reader in idle[1:] if reader.at_eof()]


async def test_if_every_connection_is_in_use_a_new_one_is_refused_with_one_line(listening, caplog):
    """And served as soon as one of them ends."""
    caplog.set_level(logging.INFO)
    async with listening() as bound, Clients(bound) as clients:
        used = []
        for _ in range(MAX):
            reader, writer = await clients.greeted()
            writer.write(b"work")
            await reader.readexactly(4)
            used.append(writer)
        refused = [await rest((await clients.connect())[0]) for _ in range(3)]
        used[0].close()
        while True:
            reader, _ = await clients.connect()
            if await asyncio.wait_for(reader.read(5), 30) == b"hello":
                break

    events = [(r.event, r.address) for r in caplog.records if hasattr(r, "address")]
    assert refused == [b"", b"", b""]
    assert events == [("connections_refused", str(bound)), ("connections_accepted", str(bound))]


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of descriptors")
async def test_without_a_free_descriptor_clients_wait_and_one_line_is_logged(
    listening, caplog, monkeypatch
):
    """asyncio would log hundreds of lines a second, and try as often."""
    import resource  # noqa: PLC0415 - not on Windows

    attempts = Attempts(3)
    logging.getLogger("eventproc.endpoints").addHandler(attempts)
    caplog.set_level(logging.DEBUG, "eventproc.endpoints")
    monkeypatch.setattr(listener_module, "RETRY_S", 0.05)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with listening() as bound, Clients(bound) as clients:
        client = socket.socket()
        taken = []
        gc.collect()  # Or the garbage of other tests frees a descriptor meanwhile.
        gc.disable()
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 20, limits[1]))
        try:
            while True:
                try:
                    taken.append(os.open(os.devnull, os.O_RDONLY))
                except OSError:
                    break
            client.settimeout(0)
            await asyncio.get_running_loop().sock_connect(client, (bound.host, bound.port))
            await asyncio.wait_for(attempts.were_made.wait(), 30)
        finally:
            gc.enable()
            for each in taken:
                os.close(each)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        greeting = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 5), 30)
        client.close()
        await clients.greeted()

    logging.getLogger("eventproc.endpoints").removeHandler(attempts)
    lines = [each.event for each in caplog.records if each.levelno > logging.DEBUG]
    assert greeting == b"hello"
    assert lines == ["connections_refused", "connections_accepted"]


async def test_a_listener_that_is_closed_leaves_no_connection_and_no_port(listening):
    """Also one that was accepted in the same moment."""
    for _ in range(5):
        async with listening() as bound:
            clients = [socket.create_connection((bound.host, bound.port)) for _ in range(3)]
            await asyncio.sleep(0)
        for client in clients:
            client.settimeout(30)
            try:
                while client.recv(100):
                    pass
            except ConnectionError:
                pass
            client.close()
        with socket.create_server((bound.host, bound.port)):
            pass
