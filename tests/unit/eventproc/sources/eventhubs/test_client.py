"""Start positions as Azure's client gets them, and where it connects."""

import asyncio
import platform
from datetime import UTC, datetime

import pytest

from eventproc._base.network import HttpProxy
from eventproc.errors import SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath
from eventproc.sources.eventhubs._client import start_of


@pytest.mark.parametrize(
    ("microseconds", "is_inclusive", "expected_ms"),
    [(500_000, True, 500), (500_001, True, 501), (500_000, False, 500), (500_001, False, 500)],
)
def test_a_start_time_is_rounded_up_to_the_next_millisecond(
    microseconds, is_inclusive, expected_ms
):
    """The client rounds down, and events of the earlier millisecond came before the time."""
    time = datetime(2026, 1, 31, 8, 0, 0, microseconds, tzinfo=UTC)
    start = start_of(EventPosition(enqueued_time=time, is_inclusive=is_inclusive))

    assert isinstance(start, datetime)
    assert start.microsecond // 1000 == expected_ms


@pytest.fixture(name="knows_platform")
def _knows_platform() -> None:
    """Ask for the name that Azure's client sends: it starts a program once, within the loop."""
    platform.platform()


@pytest.mark.parametrize(
    ("endpoint", "target"), [(None, b"hub.invalid:443"), ("sb://127.0.0.1:8443", b"127.0.0.1:8443")]
)
async def test_a_client_connects_by_the_proxy(knows_platform, endpoint, target):
    """Also to a custom endpoint, at its own port: a closed network has no other way."""
    requests: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    proxy = HttpProxy(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    source = EventHubSource.from_connection_string(
        "Endpoint=sb://hub.invalid/;SharedAccessKeyName=a;SharedAccessKey=b=;EntityPath=orders",
        options=EventHubOptions(
            http_proxy=proxy, custom_endpoint=endpoint, receive_path=ReceivePath.DIRECT
        ),
    )
    async with server, source:
        with pytest.raises(SourceUnavailableError):
            await source.partition_ids()

    assert set(requests) == {b"CONNECT %b HTTP/1.1\r\n" % target}
