"""A connection to one container or table of a storage account: for stores and for dead letters.

Each request is made once, without retries, and every exception of Azure's clients becomes one of
``eventproc.errors`` or ``ConditionFailedError``. The HTTP transport counts sends, refuses answers
of other servers, sends large bodies in pieces, and loads the trusted certificates once: Azure's own
transport would load them for each request.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from io import BytesIO
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import aiohttp
from azure.core import MatchConditions, __version__
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.pipeline.transport import AioHttpTransport
from azure.core.rest import AsyncHttpResponse, HttpRequest

from eventproc._base.azure_storage.account import require_account, require_endpoint
from eventproc._base.azure_storage.answers import (
    ClientT,
    Right,
    Service,
    error_for,
    expiry_before,
    no_answer,
)
from eventproc._base.identity import NoTokenError, shared
from eventproc._base.logs import get_logger
from eventproc._base.network import ForeignAnswerError, HttpProxy, require_own_answer
from eventproc._base.secrets import read_secret
from eventproc.errors import ConfigurationError, StoreRejectedError, StoreUnavailableError

T = TypeVar("T")

_PIECE_BYTES_MAX: Final = 256 * 1024

_sends: ContextVar[list[None] | None] = ContextVar("eventproc_store_sends", default=None)


class Connection(Generic[ClientT]):
    """A client of one container or table while it is open, and its requests."""

    def __init__(
        self,
        service: Service[ClientT],
        account_url: str,
        name: str,
        credential: object,
        *,
        request_timeout: timedelta,
        ca_bundle: str | None,
        http_proxy: HttpProxy | None,
    ) -> None:
        """Check the address; ``open`` makes the client, and the first request connects it.

        Raises:
            ConfigurationError: the URL or the name is not valid, or a token would be sent without
                TLS.
        """
        self._is_identity = hasattr(credential, "get_token")
        url = urlsplit(account_url)
        if url.scheme not in {"http", "https"}:
            raise ConfigurationError(
                f"begin it with https://, as in https://NAME.{service.kind}.core.windows.net",
                setting="account_url",
            )
        require_account(account_url)
        if not re.fullmatch(service.name_pattern, name):
            raise ConfigurationError(service.name_rule, setting=service.setting, value=repr(name))
        if url.scheme == "http" and self._is_identity:
            raise ConfigurationError(
                "begin it with https:// for a token credential, which is sent with each request",
                setting="account_url",
            )
        self.place = f"{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}/{name}"
        """The address without secrets, for messages and logs."""

        self._service = service
        self._request_timeout = request_timeout
        self._ca_bundle = ca_bundle
        settings: dict[str, Any] = {}
        if http_proxy is not None:
            settings["proxies"] = dict.fromkeys(("http", "https"), http_proxy.url_with_user)
        # The client must not retry: it would hide that an answer was lost.
        self._new_client = partial(
            service.client,
            account_url,
            name,
            credential=shared(credential),
            retry_total=0,
            **settings,
        )
        self._client: ClientT | None = None

    @property
    def client(self) -> ClientT:
        """Azure's client, while it is open."""
        if self._client is None:
            raise RuntimeError(f"{self.place} is not open: use `async with` or `await open()`")
        return self._client

    async def open(self) -> None:
        """Make the client."""
        ssl_context = await asyncio.to_thread(ssl_context_for, self._ca_bundle)
        transport = new_transport(self._request_timeout, ssl_context)
        self._client = self._new_client(transport=transport)

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = cast("Any", self._client), None
        if client is not None:
            await client.close()

    async def ask(self, right: Right, call: Callable[[], Awaitable[T]]) -> T:
        """Make one request that needs *right*, and translate its errors.

        Raises:
            StoreUnavailableError: there is no answer, or a temporary failure.
            StoreRejectedError: the service refuses permanently.
            ConditionFailedError: the record is not of the version that was named.
        """
        what = f"{self._service.place} {self.place}"
        sends: list[None] = []
        try:
            with counted(sends):
                async with asyncio.timeout(self._request_timeout.total_seconds()):
                    return await call()
        except HttpResponseError as error:
            if error.status_code is None and not isinstance(error, ClientAuthenticationError):
                raise no_answer(error, what) from error  # cut short
            url, date = _request_of(error)
            raise error_for(
                self._service,
                error.status_code or 0,
                code_of(error),
                place=self.place,
                right=right,
                was_repeated=len(sends) > 1,
                expired_at=expiry_before(url, date),
                is_identity=self._is_identity,
                url=url,
            ) from error
        except NoTokenError as error:
            raise StoreRejectedError(f"{what} cannot be used: {error}") from error
        except (AzureError, aiohttp.ClientError, OSError) as error:
            raise no_answer(error, what) from error

    def time_of(self, response: AsyncHttpResponse) -> datetime:
        """Return the service's time in an answer: without it no record can be called expired.

        Raises:
            StoreUnavailableError: the answer has none.
        """
        at = _date(response)
        if at is None:
            raise StoreUnavailableError(
                f"{self.place} answered a listing without the header Date: check the proxies "
                "between this processor and the storage account"
            )
        return at


def account_in(connection_string: str, service: Service[Any]) -> tuple[str, Any]:
    """Return the URL of an account's service, and the credential, from a connection string.

    Instead of the string it may say where that is, as ``read_secret`` takes it.

    Raises:
        ConfigurationError: the text is not a connection string of a storage account, or names only
            other services of it.
    """
    connection_string = require_endpoint(read_secret(connection_string), service.kind)
    try:
        return service.account_of(connection_string)
    except (ValueError, TypeError):
        # ``from None``: the client's message may quote the connection string, with the key.
        raise ConfigurationError(
            "this is not the connection string of a storage account: it has AccountName=... "
            "and AccountKey=... (one of Event Hubs, with Endpoint=sb://..., is for the source)"
        ) from None


def if_is(etag: str) -> dict[str, Any]:
    """Return the clients' arguments for the condition that a record still has this ETag."""
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


async def unless_exists(create: Callable[[], Awaitable[object]], code: str) -> None:
    """Create a container or table, unless the service answers with this code that it exists."""
    try:
        await create()
    except HttpResponseError as error:
        if code_of(error) != code:
            raise


def code_of(error: HttpResponseError) -> str:
    """Return the service's error code, empty if something else answered."""
    response = cast("AsyncHttpResponse | None", error.response)
    if response is None:
        return type(error).__name__
    code = response.headers.get("x-ms-error-code") or getattr(error, "error_code", None) or ""
    return str(getattr(code, "value", code))


def _request_of(error: HttpResponseError) -> tuple[str, datetime | None]:
    """Return the URL that was requested, and the service's time."""
    response = cast("AsyncHttpResponse | None", error.response)
    return (response.request.url, _date(response)) if response else ("", None)


def _date(response: AsyncHttpResponse) -> datetime | None:
    date = response.headers.get("Date")
    # Dates in HTTP are in GMT. A proxy may add a second one, and then no zone is found in the text.
    return parsedate_to_datetime(date).replace(tzinfo=UTC) if date else None


# The transport.


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
