"""A connection to one container or table of a storage account: for stores and for dead letters.

Each request is made once, without retries, and every exception of Azure's clients becomes one of
``eventproc.errors`` or ``ConditionFailedError``.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlsplit

import aiohttp
from azure.core import MatchConditions
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.rest import AsyncHttpResponse

from eventproc.azure_storage.answers import (
    ClientT,
    Right,
    Service,
    error_for,
    expiry_before,
    no_answer,
)
from eventproc.azure_storage.transport import counted, new_transport, ssl_context_for
from eventproc.errors import ConfigurationError, StoreRejectedError, StoreUnavailableError
from eventproc.identity import NoTokenError, shared
from eventproc.identity.storage_account import require_account, require_endpoint
from eventproc.network import HttpProxy

T = TypeVar("T")


def account_in(connection_string: str, service: Service[Any]) -> tuple[str, Any]:
    """Return the URL of an account's service, and the credential, from a connection string.

    Raises:
        ConfigurationError: the text is not a connection string of a storage account, or names only
            other services of it.
    """
    connection_string = require_endpoint(connection_string, service.kind)
    try:
        return service.account_of(connection_string)
    except (ValueError, TypeError):
        # ``from None``: the client's message may quote the connection string, with the key.
        raise ConfigurationError(
            "this is not the connection string of a storage account: it has AccountName=... "
            "and AccountKey=... (one of Event Hubs, with Endpoint=sb://..., is for the source)"
        ) from None


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


def if_is(etag: str) -> dict[str, Any]:
    """Return the clients' arguments for the condition that a record still has this ETag."""
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


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
    return parsedate_to_datetime(date) if date else None
