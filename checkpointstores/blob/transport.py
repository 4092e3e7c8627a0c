"""The HTTP transport of the blob store: it counts sends, and sends large bodies in pieces."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from io import BytesIO
from typing import Final
from urllib.request import getproxies_environment

from eventproc.extras import needing

with needing("blob"):
    import aiohttp
    from azure.core.pipeline.transport import AioHttpTransport
    from azure.core.rest import HttpRequest

_PIECE_BYTES_MAX: Final = 256 * 1024

_sends: ContextVar[list[None] | None] = ContextVar("eventproc_blob_sends", default=None)


def new_transport(request_timeout: timedelta) -> AioHttpTransport:
    """Return a transport for one client, which closes it."""
    timeout_s = request_timeout.total_seconds()
    return _Transport(session=_new_session(), connection_timeout=timeout_s, read_timeout=timeout_s)


@contextmanager
def counted(sends: list[None]) -> Iterator[None]:
    """Append an item to *sends* for each request that is sent in the context."""
    token = _sends.set(sends)
    try:
        yield
    finally:
        _sends.reset(token)


async def _count_send(*_: object) -> None:
    sends = _sends.get()
    if sends is not None:
        sends.append(None)


def _new_session() -> aiohttp.ClientSession:
    """Return a session that counts how often it sends a request.

    aiohttp repeats a PUT by itself if a reused connection breaks before the answer. The second PUT
    then fails its ETag condition because of the first, and must not count as a lost race.
    """
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_count_send)
    return aiohttp.ClientSession(
        trace_configs=[trace],
        # Looking up proxies costs as much as the rest of a request, so only if any are set.
        trust_env=bool(getproxies_environment()),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )


class _Transport(AioHttpTransport):  # type: ignore[misc]  # azure-core loads it lazily, untyped
    """Sends a large body in pieces, so that it does not block the event loop."""

    def _get_request_data(self, request: HttpRequest) -> object:
        data: object = super()._get_request_data(request)
        if isinstance(data, bytes) and len(data) > _PIECE_BYTES_MAX:
            return BytesIO(data)
        return data
