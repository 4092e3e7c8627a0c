"""Answers over real sockets, TCP and Unix, asked by ``fetch`` and by other clients."""

import asyncio
import errno
import os
import socket
from contextlib import ExitStack, closing
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPConnection

import aiohttp
import pytest

from eventproc._base.http import server as server_module
from eventproc._base.http.address import Answer, ListenAddress, verdict
from eventproc._base.http.client import fetch
from eventproc._base.http.server import BODY_BYTES_MAX, ServerThread, serve, serve_requests
from eventproc._base.logs import get_logger
from eventproc.errors import ConfigurationError

LONG = timedelta(seconds=60)
HALF = b"GET /red HTTP/1.1\r\nHost: localhost\r\n"


async def red():
    """Answer for two processors, of which one is red."""
    return verdict([{"owner_id": "a", "ok": True}, {"owner_id": "b", "ok": False}])


async def text():
    """Answer text with a type of its own."""
    return Answer("a 1\n", content_type="text/plain; version=1.0.0")


ROUTES = {"/red": red, "/text": text}


@pytest.fixture(params=["tcp", "unix"])
def address(request, tmp_path):
    """A free address of each kind."""
    return ListenAddress(path=str(tmp_path / "a.sock") if request.param == "unix" else "")


async def test_a_path_answers_with_its_status_and_its_body(address):
    """JSON or text, over TCP and over a Unix socket."""
    async with serve(address, ROUTES, "--http") as bound:
        answers = [await fetch(bound, path, LONG) for path in ROUTES]
        missing = await fetch(bound, "/none", LONG)
        index = await fetch(bound, "/", LONG)

    assert bound.port or bound.path
    assert answers == [await red(), await text()]
    assert index == Answer({"paths": [*ROUTES]})
    assert missing is not None
    assert missing.status == 404


async def test_no_cache_on_the_way_may_keep_an_answer():
    """A probe that gets the answer of a minute ago sees no failure."""

    def headers_of(path):
        connection = HTTPConnection("127.0.0.1", bound.port)
        with closing(connection):
            connection.request("GET", path)
            return connection.getresponse().headers

    async with serve(ListenAddress(), ROUTES, "--http") as bound:
        found = [await asyncio.to_thread(headers_of, path) for path in ROUTES]

    assert [headers["Cache-Control"] for headers in found] == ["no-store", "no-store"]


async def test_a_closed_server_gives_no_answer(address):
    """Nor does one that accepts the connection and says nothing."""
    async with serve(address, ROUTES, "--http") as bound:
        pass
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = ListenAddress(port=silent.getsockname()[1])
        after = await fetch(mute, "/red", timedelta(seconds=0.1))

    assert await fetch(bound, "/red", LONG) is None
    assert after is None


async def test_a_port_in_use_is_refused_with_the_cause():
    """The message names option, address and cause."""
    with ExitStack() as stack:
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        with pytest.raises(ConfigurationError) as refused:
            async with serve(ListenAddress(port=taken), ROUTES, "--http"):
                pass

    assert str(refused.value) == (
        f"--http 127.0.0.1:{taken} cannot be listened on: another process listens there already"
    )


@pytest.mark.parametrize("host", ["1.2.3.4", "no-such-host.invalid"])
async def test_a_host_of_another_machine_is_refused(host):
    """So is one that no name server knows."""
    with pytest.raises(ConfigurationError) as refused:
        async with serve(ListenAddress(host, 0), ROUTES, "--http"):
            pass

    assert str(refused.value).startswith(f"--http {host}:0 cannot be listened on: ")
    assert not str(refused.value).endswith(os.strerror(errno.EADDRNOTAVAIL))


async def test_a_request_under_way_does_not_delay_the_end_of_the_block():
    """It has a second."""
    begun = asyncio.Event()

    async def hanging():
        begun.set()
        await asyncio.Event().wait()
        return Answer("")

    async with asyncio.TaskGroup() as group:
        async with serve(ListenAddress(), {"/": hanging}, "--http") as bound:
            asked = group.create_task(fetch(bound, "/", LONG))
            await begun.wait()

    assert asked.result() is None


async def test_a_connection_without_a_whole_request_is_closed(monkeypatch):
    """Without any byte, with half a request, and with half a request after a whole one."""
    monkeypatch.setattr(server_module, "IDLE_S", 0.1)
    async with serve(ListenAddress(), ROUTES, "--http") as bound:

        async def until_closed(sent):
            reader, writer = await asyncio.open_connection(bound.host, bound.port)
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(), 30)
            writer.close()
            return answer

        answers = [await until_closed(each) for each in (b"", HALF, HALF + b"\r\n" + HALF)]

    assert answers[:2] == [b"", b""]
    assert answers[2].count(b"HTTP/1.1 503") == 1


async def test_an_answer_may_take_longer_than_a_connection_may_be_silent(monkeypatch):
    """As the stream of the dashboard, which has no end."""
    loop = asyncio.get_running_loop()
    real, passed_s = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: real() + passed_s)

    def pass_time():
        nonlocal passed_s
        passed_s += 3 * server_module.IDLE_S

    async def pieces():
        yield b"first, "
        loop.call_soon(pass_time)
        await asyncio.sleep(2 * server_module.IDLE_S)
        yield b"second"

    async def respond(_):
        return Answer(body=pieces())

    async with serve_requests(ListenAddress(), respond, "--http") as bound:
        reader, writer = await asyncio.open_connection(bound.host, bound.port)
        writer.write(HALF + b"Connection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()

    assert b"first, " in answer
    assert b"second" in answer


async def test_a_probe_is_answered_while_hundreds_of_connections_are_idle():
    """And they do not take more descriptors than a processor has to spare."""
    async with serve(ListenAddress(), ROUTES, "--http") as bound:
        clients = []
        for number in range(300):
            clients.append(await asyncio.open_connection(bound.host, bound.port))
            clients[-1][1].write(HALF if number % 2 else b"")
        answers = [await fetch(bound, "/red", LONG) for _ in range(3)]
        ends = [asyncio.ensure_future(reader.read()) for reader, _ in clients]
        while sum(end.done() for end in ends) < 300 - server_module.CONNECTIONS_MAX:
            await asyncio.wait(
                [end for end in ends if not end.done()], return_when=asyncio.FIRST_COMPLETED
            )
    await asyncio.gather(*ends, return_exceptions=True)
    for _, writer in clients:
        writer.close()

    assert answers == [await red()] * 3


@pytest.mark.parametrize(("host", "status"), [("evil.example", 403), ("orders", 200)])
async def test_a_page_that_has_its_own_name_resolved_to_this_machine_reads_nothing(host, status):
    """A browser takes what it reads for that site's (DNS rebinding)."""

    def ask():
        connection = HTTPConnection("127.0.0.1", bound.port)
        with closing(connection):
            connection.request("GET", "/text", headers={"Host": host})
            answer = connection.getresponse()
            return answer.status, answer.read()

    async with serve(ListenAddress(), ROUTES, "--http") as bound:
        found, body = await asyncio.to_thread(ask)

    assert found == status
    assert (b"a 1" in body) is (status == 200)
    assert status == 200 or b"name that host in --http" in body


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://[/ HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
async def test_a_request_that_is_no_http_is_answered_and_costs_no_traceback(request_, caplog):
    """The fault is the client's, and it may send a thousand."""
    async with serve(ListenAddress(), ROUTES, "--http") as bound:
        reader, writer = await asyncio.open_connection(bound.host, bound.port)
        writer.write(request_)
        line = await asyncio.wait_for(reader.readline(), 30)
        writer.close()

    assert line.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 200"))
    assert caplog.records == []


ANY_PORT = ListenAddress()


async def test_a_request_arrives_as_a_value_and_its_answer_is_sent():
    """Method, decoded path, headers, body and the local address; status, type, headers and
    body."""
    seen = []

    async def serve(request):
        seen.append(request)
        return Answer(
            status=HTTPStatus.CREATED, content_type="text/css", body=b"x", headers={"X-A": "1"}
        )

    async with (
        serve_requests(ANY_PORT, serve, "--http") as bound,
        aiohttp.ClientSession() as client,
    ):
        url = f"http://{bound}/a%20b?c=d"
        async with client.put(url, data=b"body", headers={"X-B": "2"}) as answer:
            found = (answer.status, answer.headers["Content-Type"], answer.headers["X-A"])
            body = await answer.read()

    assert (found, body) == ((201, "text/css", "1"), b"x")
    assert [(r.method, r.path, r.headers["x-b"], r.body, r.local_host) for r in seen] == [
        ("PUT", "/a b", "2", b"body", "127.0.0.1")
    ]


async def test_pieces_are_sent_as_they_come_until_the_client_is_gone():
    """The iterator is cancelled then, although it had nothing more to send."""
    ended = asyncio.Event()

    async def pieces():
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def serve(_):
        return Answer(body=pieces())

    async with (
        serve_requests(ANY_PORT, serve, "--http") as bound,
        aiohttp.ClientSession() as client,
    ):
        async with client.get(f"http://{bound}/") as answer:
            first = await answer.content.readany()
        await asyncio.wait_for(ended.wait(), 30)

    assert first == b"first"


async def test_a_body_that_is_too_large_is_refused():
    """It is not even kept."""

    async def serve(_):
        return Answer()

    async with (
        serve_requests(ANY_PORT, serve, "--http") as bound,
        aiohttp.ClientSession() as client,
    ):
        body = b"x" * (BODY_BYTES_MAX + 1)
        async with client.post(f"http://{bound}/", data=body) as answer:
            status = answer.status

    assert status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


async def test_an_address_in_use_is_an_error_that_names_the_option():
    """In the words of the command line."""

    async def serve(_):
        return Answer()

    async with serve_requests(ANY_PORT, serve, "--http") as bound:
        with pytest.raises(ConfigurationError, match=rf"--port {bound} cannot be"):
            async with serve_requests(bound, serve, "--port"):
                pass


@pytest.mark.parametrize(
    ("headers", "status"),
    [("Content-Encoding: gzip\r\nContent-Length: 3", 400), ("Content-Length: 9", 408)],
)
async def test_a_body_that_cannot_be_decoded_or_does_not_come_is_refused(
    headers, status, monkeypatch, caplog
):
    """Without a traceback, and without an end of patience."""
    monkeypatch.setattr(server_module, "BODY_S", 0.1)

    async def serve(_):
        return Answer()

    async with serve_requests(ANY_PORT, serve, "--http") as bound:
        reader, writer = await asyncio.open_connection(bound.host, bound.port)
        writer.write(f"POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\nabc".encode())
        line = await asyncio.wait_for(reader.readline(), 30)
        writer.close()

    assert line.split()[1] == str(status).encode()
    assert caplog.records == []


async def test_an_error_beside_the_server_of_a_thread_ends_it_and_is_logged(caplog):
    """Nobody calls the thread, so the log alone can say why there is no answer any more."""

    async def check():
        raise ZeroDivisionError("of a check")

    server = ServerThread(ANY_PORT, ROUTES, "--http", beside=check, log=get_logger("eventproc.x"))
    bound = await server.bound()
    while await fetch(bound, "/red", LONG) is not None:
        pass
    await server.stop()

    (record,) = [vars(record) for record in caplog.records]
    assert (record["event"], record["levelname"]) == ("http_server_failed", "ERROR")
    assert "ZeroDivisionError" in record["error"]
