"""The HTTP transport of the blob and table stores.

It counts sends, refuses answers of other servers, sends large bodies in pieces, and loads the
trusted certificates once: Azure's own transport would load them for each request.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from io import BytesIO
from typing import Final
from urllib.request import getproxies_environment

import aiohttp
from azure.core import __version__
from azure.core.pipeline.transport import AioHttpTransport
from azure.core.rest import HttpRequest

from eventproc.errors import ConfigurationError
from eventproc.logs import get_logger
from eventproc.network.failures import ForeignAnswerError, require_own_answer

_PIECE_BYTES_MAX: Final = 256 * 1024

_sends: ContextVar[list[None] | None] = ContextVar("eventproc_store_sends", default=None)


def new_transport(
    request_timeout: timedelta, ssl_context: ssl.SSLContext | None
) -> AioHttpTransport:
    """Return a transport for one client, which closes it.

    Without an SSL context the certificates of the operating system are trusted.
    """
    timeout_s = request_timeout.total_seconds()
    if not hasattr(AioHttpTransport, "_get_request_data"):
        get_logger("eventproc.stores").warning("body_pieces_unavailable", azure_core=__version__)
    return _Transport(
        session=_new_session(ssl_context), connection_timeout=timeout_s, read_timeout=timeout_s
    )


def ssl_context_for(ca_bundle: str | None) -> ssl.SSLContext | None:
    """Load the certificates to trust; ``None`` for the default. It takes some 10 ms.

    Raises:
        ConfigurationError: *ca_bundle* cannot be read as certificates.
    """
    if ca_bundle is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(
            f"cannot be read as certificates: {error}",
            setting="ca_bundle",
            value=repr(ca_bundle),
        ) from error


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


async def _check_answer(_: object, __: object, ended: aiohttp.TraceRequestEndParams) -> None:
    try:
        require_own_answer(ended.response.status, ended.response.headers)
    except ForeignAnswerError:
        ended.response.close()
        raise


def _new_session(ssl_context: ssl.SSLContext | None) -> aiohttp.ClientSession:
    """Return a session that counts how often it sends a request, and checks who answers.

    aiohttp repeats a PUT by itself if a reused connection breaks before the answer. The second PUT
    then fails its ETag condition because of the first, and must not count as a lost race.
    """
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_count_send)
    trace.on_request_end.append(_check_answer)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=True if ssl_context is None else ssl_context),
        trace_configs=[trace],
        # Looking up proxies costs as much as the rest of a request, so only if any are set.
        trust_env=bool(getproxies_environment()),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )


class _Transport(AioHttpTransport):  # type: ignore[misc]  # azure-core loads it lazily, untyped
    """Sends a large body in pieces, so that it does not block the event loop.

    It overrides a private method of Azure's. In a release without that, bodies are sent at once.
    """

    def _get_request_data(self, request: HttpRequest) -> object:
        data: object = super()._get_request_data(request)
        if isinstance(data, bytes) and len(data) > _PIECE_BYTES_MAX:
            return BytesIO(data)
        return data
