"""A blob container through Azure's client.

Each call is one request without retries, and every exception of the client becomes one of
``eventproc.errors`` or ``ConditionFailedError``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

from checkpointstores.blob.container import (
    BlobItem,
    Listing,
    Right,
    Written,
    error_for,
    expiry_before,
)
from checkpointstores.blob.listing_xml import FOLDER_METADATA, parse_page
from checkpointstores.reachability import no_answer
from checkpointstores.requests import ConditionFailedError
from eventproc.errors import StoreRejectedError, StoreUnavailableError
from eventproc.extras import needing
from eventproc.identity import NoTokenError
from eventproc.logs import Logger

with needing("blob"):
    import aiohttp
    from azure.core import MatchConditions
    from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
    from azure.core.rest import AsyncHttpResponse, HttpRequest
    from azure.storage.blob import BlobProperties
    from azure.storage.blob.aio import BlobClient, ContainerClient

    from checkpointstores.transport import counted

T = TypeVar("T")

_NO_BLOB: Final = "eventproc-asks-whether-it-may-read"
"""A blob that does not exist. Reading it when a store is opened checks the right to read."""


class AzureContainer:
    """A ``BlobContainer`` through Azure's client."""

    def __init__(
        self,
        client: ContainerClient,
        place: str,
        *,
        request_timeout: timedelta,
        is_identity: bool,
        log: Logger,
    ) -> None:
        self._client = client
        self._place = place
        self._request_timeout_s = request_timeout.total_seconds()
        self._is_identity = is_identity
        self._log = log
        self._blob_by_name: dict[str, BlobClient] = {}
        self._lists_raw = True

    async def list(self, prefix: str) -> Listing:
        if self._lists_raw:
            try:
                return await self._list_raw(prefix)
            except (AttributeError, TypeError, ValueError) as error:
                # Private names of Azure's client changed: use its public method, which is slower.
                self._lists_raw = False
                self._log.warning("listing_degraded", error=repr(error))
        return await self._list_by_vendor(prefix)

    async def _list_raw(self, prefix: str) -> Listing:
        url = self._client.url
        url += f"{'&' if '?' in url else '?'}restype=container&comp=list&include=metadata"
        url += f"&prefix={quote(prefix, safe='')}"
        items: list[BlobItem] = []
        as_of: datetime | None = None
        marker = ""
        while True:
            at = f"&marker={quote(marker, safe='')}" if marker else ""
            page = await self._ask(Right.LIST, partial(self._get, url + at))
            as_of = as_of or self._time_of(page)
            found, marker = parse_page(page.content)
            items += found
            if not marker:
                return Listing(items=tuple(items), as_of=as_of)

    async def _get(self, url: str) -> AsyncHttpResponse:
        request = HttpRequest("GET", url, headers={"x-ms-version": self._client.api_version})
        # The client's own pipeline signs the request; only its XML parser is not used.
        pipeline: Any = self._client._pipeline  # noqa: SLF001
        response: AsyncHttpResponse = (await pipeline.run(request)).http_response
        if response.status_code != HTTPStatus.OK:
            raise HttpResponseError(response=response)
        return response

    async def _list_by_vendor(self, prefix: str) -> Listing:
        dates: list[datetime] = []
        pages = self._client.list_blobs(
            name_starts_with=prefix,
            include=["metadata"],
            raw_response_hook=lambda response: dates.append(self._time_of(response.http_response)),
        ).by_page()
        items = []
        while (page := await self._ask(Right.LIST, lambda: anext(pages, None))) is not None:
            items += [_as_item(blob.name, blob) async for blob in page]
        return Listing(items=tuple(items), as_of=dates[0])

    def _time_of(self, response: AsyncHttpResponse) -> datetime:
        """Return the service's time in an answer: without it no record can be called expired."""
        at = _date(response)
        if at is None:
            raise StoreUnavailableError(
                f"{self._place} answered a listing without the header Date: check the proxies "
                "between this processor and the storage account"
            )
        return at

    async def read(self, name: str, *, body_bytes_max: int = 0) -> BlobItem | None:
        while True:
            try:
                return await self._read_once(name, body_bytes_max)
            except ConditionFailedError:
                continue  # written between the two requests: read the newer version

    async def _read_once(self, name: str, body_bytes_max: int) -> BlobItem | None:
        blob = self._blob(name)
        try:
            # Properties and body apart: for an empty blob, the client's download makes two
            # requests, which may return two versions.
            found = await self._ask(Right.READ, blob.get_blob_properties)
        except ConditionFailedError:
            return None
        body = b""
        if body_bytes_max and found.size:
            body = await self._ask(
                Right.READ, lambda: self._download(blob, found.etag, body_bytes_max + 1)
            )
        return replace(_as_item(name, found), body=body)

    async def _download(self, blob: BlobClient, etag: str, length: int) -> bytes:
        stream = await blob.download_blob(offset=0, length=length, **_if_is(etag))
        content: bytes = await stream.readall()
        return content

    async def put(
        self, name: str, metadata: Mapping[str, str], body: bytes, *, etag: str | None
    ) -> Written:
        condition = {"overwrite": False} if etag is None else {"overwrite": True} | _if_is(etag)
        answer = await self._ask(
            Right.WRITE,
            lambda: self._blob(name).upload_blob(body, metadata=dict(metadata), **condition),
        )
        return _as_written(answer)

    async def set_metadata(self, name: str, metadata: Mapping[str, str], *, etag: str) -> Written:
        answer = await self._ask(
            Right.WRITE,
            lambda: self._blob(name).set_blob_metadata(dict(metadata), **_if_is(etag)),
        )
        return _as_written(answer)

    async def delete(self, name: str, *, etag: str) -> None:
        await self._ask(Right.DELETE, lambda: self._blob(name).delete_blob(**_if_is(etag)))

    def _blob(self, name: str) -> BlobClient:
        if name not in self._blob_by_name:
            self._blob_by_name[name] = self._client.get_blob_client(name)
        return self._blob_by_name[name]

    async def _ask(self, right: Right, call: Callable[[], Awaitable[T]]) -> T:
        """Make one request, and translate its errors."""
        sends: list[None] = []
        try:
            with counted(sends):
                async with asyncio.timeout(self._request_timeout_s):
                    return await call()
        except HttpResponseError as error:
            if error.status_code is None and not isinstance(error, ClientAuthenticationError):
                raise no_answer(error, f"blob container {self._place}") from error  # cut short
            raise error_for(
                error.status_code or 0,
                _code(error),
                place=self._place,
                right=right,
                was_repeated=len(sends) > 1,
                expired_at=_expired_at(error),
                is_identity=self._is_identity,
                url=_url(error),
            ) from error
        except NoTokenError as error:
            raise StoreRejectedError(
                f"blob container {self._place} cannot be used: {error}"
            ) from error
        except (AzureError, aiohttp.ClientError, OSError) as error:
            raise no_answer(error, f"blob container {self._place}") from error

    async def check(self) -> None:
        """List and read, to check the credential's rights without changing anything."""
        await self._ask(Right.LIST, self._list_one)
        await self.read(_NO_BLOB)

    async def _list_one(self) -> None:
        await anext(self._client.list_blobs(results_per_page=1).by_page(), None)

    async def create(self) -> None:
        """Create the container unless it exists."""

        async def create() -> None:
            try:
                await self._client.create_container()
            except HttpResponseError as error:
                if _code(error) != "ContainerAlreadyExists":
                    raise

        try:
            await self._ask(Right.LIST, self._list_one)
        except StoreRejectedError as error:
            cause = error.__cause__
            if isinstance(cause, HttpResponseError) and _code(cause) == "ContainerNotFound":
                await self._ask(Right.CREATE_CONTAINER, create)
            # Else ``check`` raises it. The service's refusal of a listing has the true reason:
            # Azurite's answer to a creation in no account has not even its headers.

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


def _if_is(etag: str) -> dict[str, Any]:
    """Return the client's arguments for the condition that a blob still has this ETag."""
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def _as_written(answer: Mapping[str, object]) -> Written:
    etag, last_modified = answer["etag"], answer["last_modified"]
    assert isinstance(last_modified, datetime)
    return Written(etag=str(etag).strip('"'), last_modified=last_modified)


def _as_item(name: str, found: BlobProperties) -> BlobItem:
    metadata = found.metadata or {}
    return BlobItem(
        name=name,
        etag=(found.etag or "").strip('"'),
        last_modified=found.last_modified,
        metadata=metadata,
        is_folder=FOLDER_METADATA in metadata,
    )


def _date(response: AsyncHttpResponse) -> datetime | None:
    """Return the service's time in an answer."""
    date = response.headers.get("Date")
    return parsedate_to_datetime(date) if date else None


def _code(error: HttpResponseError) -> str:
    response = cast("AsyncHttpResponse | None", error.response)
    if response is None:
        return type(error).__name__
    return response.headers.get("x-ms-error-code") or ""


def _expired_at(error: HttpResponseError) -> str:
    """Return when the SAS token of a refused request expired, by the service's clock, or ``""``."""
    response = cast("AsyncHttpResponse | None", error.response)
    return expiry_before(response.request.url, _date(response)) if response else ""


def _url(error: HttpResponseError) -> str:
    response = cast("AsyncHttpResponse | None", error.response)
    return response.request.url if response else ""
