"""``serve_requests``: whole requests over real sockets."""

import asyncio
from http import HTTPStatus

import aiohttp
import pytest

from eventproc._base.http import server as server_module
from eventproc._base.http.address import Answer, ListenAddress
from eventproc._base.http.server import BODY_BYTES_MAX, serve_requests
from eventproc.errors import ConfigurationError

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
