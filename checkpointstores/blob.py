"""A group's records in an Azure Blob container, laid out so that Azure's own processors share it.

The only file that knows the vendor: each request becomes one round trip with a clear outcome,
and every error of the vendor becomes one of ours.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final, Self, TypeVar, cast
from urllib.parse import quote, urlsplit
from urllib.request import getproxies_environment

import aiohttp
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.transport import AioHttpTransport
from azure.core.rest import AsyncHttpResponse, HttpRequest
from azure.storage.blob import BlobProperties
from azure.storage.blob.aio import BlobClient, ContainerClient

from checkpointstores._blob_container import (
    BlobItem,
    ConditionFailedError,
    Listing,
    Written,
    meaning,
)
from checkpointstores._blob_records import BlobRecords
from checkpointstores._listing_xml import FOLDER_METADATA, parse_page
from checkpointstores._retry import retried
from eventproc.errors import (
    ConfigurationError,
    StoreCorruptError,
    StoreUnavailableError,
)
from eventproc.logs import Logger

T = TypeVar("T")

BlobCredential = str | AzureNamedKeyCredential | AzureSasCredential | AsyncTokenCredential
"""An account key or a SAS token as text, or a credential object of azure-core or azure-identity."""

_CONTAINER_NAME: Final = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_PIECE_BYTES_MAX: Final = 256 * 1024

_sends: ContextVar[list[None] | None] = ContextVar("eventproc_blob_sends", default=None)


async def _count_send(*_: object) -> None:
    sends = _sends.get()
    if sends is not None:
        sends.append(None)


def _new_session() -> aiohttp.ClientSession:
    """A session that tells us when it sends a request again.

    aiohttp repeats a PUT by itself when a kept connection breaks before the answer. The second
    one then fails on the etag that the first one changed, and nobody would know why.
    """
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_count_send)
    return aiohttp.ClientSession(
        trace_configs=[trace],
        # Looking up proxies costs as much as the rest of a request: only where there are any.
        trust_env=bool(getproxies_environment()),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )


class _Transport(AioHttpTransport):  # type: ignore[misc]  # the vendor loads it lazily, untyped
    """Sends a large state in pieces, so that the event loop goes on meanwhile."""

    def _get_request_data(self, request: HttpRequest) -> object:
        data: object = super()._get_request_data(request)
        if isinstance(data, bytes) and len(data) > _PIECE_BYTES_MAX:
            return BytesIO(data)
        return data


class _AzureContainer:
    """Single round trips to one container."""

    def __init__(self, client: ContainerClient, *, request_timeout: timedelta, log: Logger) -> None:
        self._client = client
        self._request_timeout_s = request_timeout.total_seconds()
        self._log = log
        self._blob_by_name: dict[str, BlobClient] = {}
        self._lists_raw = True

    async def list(self, prefix: str) -> Listing:
        if self._lists_raw:
            try:
                return await self._list_raw(prefix)
            except (AttributeError, TypeError, ValueError) as error:
                # Private parts of the vendor's client moved: slower, but surely, by its front.
                self._lists_raw = False
                self._log.warning("store_lists_slowly", error=repr(error))
        return await self._list_by_vendor(prefix)

    async def _list_raw(self, prefix: str) -> Listing:
        url = self._client.url
        url += f"{'&' if '?' in url else '?'}restype=container&comp=list&include=metadata"
        url += f"&prefix={quote(prefix, safe='')}"
        items: list[BlobItem] = []
        as_of, marker = None, ""
        while True:
            at = f"&marker={quote(marker, safe='')}" if marker else ""
            page = await self._ask(partial(self._get, url + at))
            as_of = as_of or _date(page)
            found, marker = parse_page(page.content)
            items += found
            if not marker:
                return Listing(items=tuple(items), as_of=as_of)

    async def _get(self, url: str) -> AsyncHttpResponse:
        request = HttpRequest("GET", url, headers={"x-ms-version": self._client.api_version})
        # The client's own pipeline signs the request; only the vendor's XML parser is left out.
        pipeline: Any = self._client._pipeline  # noqa: SLF001
        response: AsyncHttpResponse = (await pipeline.run(request)).http_response
        if response.status_code != HTTPStatus.OK:
            raise HttpResponseError(response=response)
        return response

    async def _list_by_vendor(self, prefix: str) -> Listing:
        dates: list[datetime | None] = []
        pages = self._client.list_blobs(
            name_starts_with=prefix,
            include=["metadata"],
            raw_response_hook=lambda response: dates.append(_date(response.http_response)),
        ).by_page()
        items = []
        while (page := await self._ask(lambda: anext(pages, None))) is not None:
            items += [_as_item(blob.name, blob) async for blob in page]
        return Listing(items=tuple(items), as_of=dates[0])

    async def read(self, name: str, *, body_bytes_max: int = 0) -> BlobItem | None:
        while True:
            try:
                return await self._read_once(name, body_bytes_max)
            except ConditionFailedError:
                continue  # rewritten between its two halves: take the newer one

    async def _read_once(self, name: str, body_bytes_max: int) -> BlobItem | None:
        blob = self._blob(name)
        try:
            # The vendor's download of an empty blob is two requests, perhaps of two versions.
            found = await self._ask(blob.get_blob_properties)
        except ConditionFailedError:
            return None
        body = b""
        if body_bytes_max and found.size:
            body = await self._ask(lambda: self._download(blob, found.etag, body_bytes_max + 1))
        return replace(_as_item(name, found), body=body)

    async def _download(self, blob: BlobClient, etag: str, length: int) -> bytes:
        stream = await blob.download_blob(
            offset=0, length=length, etag=etag, match_condition=MatchConditions.IfNotModified
        )
        return await stream.readall()

    async def put(
        self, name: str, metadata: Mapping[str, str], body: bytes, *, etag: str | None
    ) -> Written:
        blob = self._blob(name)
        if etag is None:
            answer = await self._ask(
                lambda: blob.upload_blob(body, overwrite=False, metadata=dict(metadata))
            )
        else:
            answer = await self._ask(
                lambda: blob.upload_blob(
                    body,
                    overwrite=True,
                    metadata=dict(metadata),
                    etag=etag,
                    match_condition=MatchConditions.IfNotModified,
                )
            )
        return _as_written(answer)

    async def set_metadata(self, name: str, metadata: Mapping[str, str], *, etag: str) -> Written:
        answer = await self._ask(
            lambda: self._blob(name).set_blob_metadata(
                dict(metadata), etag=etag, match_condition=MatchConditions.IfNotModified
            )
        )
        return _as_written(answer)

    async def delete(self, name: str, *, etag: str) -> None:
        await self._ask(
            lambda: self._blob(name).delete_blob(
                etag=etag, match_condition=MatchConditions.IfNotModified
            )
        )

    def _blob(self, name: str) -> BlobClient:
        if name not in self._blob_by_name:
            self._blob_by_name[name] = self._client.get_blob_client(name)
        return self._blob_by_name[name]

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """One round trip; whatever goes wrong comes out as one of three errors."""
        sends: list[None] = []
        token = _sends.set(sends)
        try:
            async with asyncio.timeout(self._request_timeout_s):
                return await call()
        except HttpResponseError as error:
            status, was_repeated = error.status_code or 0, len(sends) > 1
            raise meaning(status, _code(error), was_repeated=was_repeated) from error
        except (AzureError, aiohttp.ClientError, OSError) as error:
            raise StoreUnavailableError(f"no answer ({type(error).__name__})") from error
        finally:
            _sends.reset(token)

    async def check(self) -> None:
        """Make the smallest request that the store cannot do without."""
        pages = self._client.list_blobs(results_per_page=1).by_page()
        await self._ask(lambda: anext(pages, None))

    async def create(self) -> None:
        """Create the container; one that exists is fine."""

        async def create() -> None:
            try:
                await self._client.create_container()
            except HttpResponseError as error:
                if _code(error) != "ContainerAlreadyExists":
                    raise

        await self._ask(create)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._client.close()


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
    """The service's clock when it answered."""
    date = response.headers.get("Date")
    return parsedate_to_datetime(date) if date else None


def _code(error: HttpResponseError) -> str:
    response = cast("AsyncHttpResponse | None", error.response)
    return (response.headers.get("x-ms-error-code") if response else None) or ""


class BlobCheckpointStore(BlobRecords):
    """Keeps records in a blob container, shared with processors of the Azure SDKs if need be.

    Build it from a connection string, or from the account's URL and a credential. One store may
    serve any number of groups; processors of one group must name the same container.
    """

    def __init__(
        self,
        account_url: str,
        container: str,
        credential: BlobCredential | None = None,
        *,
        create_container: bool = False,
        request_timeout: timedelta = timedelta(seconds=10),
        concurrency_max: int = 32,
        legacy_prefix: str | None = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            account_url: For example ``https://contoso.blob.core.windows.net``, perhaps with a
                SAS token as its query.
            container: Its name.
            credential: ``None`` where the URL brings a SAS token. It stays yours to close.
            create_container: Create the container when the store is opened, if there is none.
                Off by default: a mistyped name must not start an empty group, which would handle
                every event again; and it needs a right that nothing else needs.
            request_timeout: For each single request. It is tried three times at most.
            concurrency_max: Most requests under way at a time.
            legacy_prefix: Where a partition has no checkpoint, look for a lease of
                ``EventProcessorHost`` in ``{legacy_prefix}{group}/{partition}``, or of Azure
                Functions with the prefix ``{namespace}/{hub}/``. They are only read.
        """
        if urlsplit(account_url).scheme not in {"http", "https"}:
            raise ConfigurationError(
                "account_url must begin with https://, as in https://NAME.blob.core.windows.net"
            )
        if not _CONTAINER_NAME.fullmatch(container):
            raise ConfigurationError(
                f"container {container!r}: give 3 to 63 lower-case letters, digits and dashes"
            )
        if request_timeout <= timedelta(0) or concurrency_max < 1:
            raise ConfigurationError("request_timeout and concurrency_max must be positive")
        place = urlsplit(account_url)
        if place.scheme == "http" and hasattr(credential, "get_token"):
            raise ConfigurationError("a token credential needs an account_url with https://")
        super().__init__(
            f"{place.hostname}{place.path.rstrip('/')}/{container}",
            concurrency_max=concurrency_max,
            legacy_prefix=legacy_prefix,
        )
        self._new_client = partial(ContainerClient, account_url, container, credential)
        self._creates_container = create_container
        self._request_timeout = request_timeout
        self._azure: _AzureContainer | None = None

    @classmethod
    def from_connection_string(
        cls,
        connection_string: str,
        container: str,
        *,
        create_container: bool = False,
        request_timeout: timedelta = timedelta(seconds=10),
        concurrency_max: int = 32,
        legacy_prefix: str | None = None,
    ) -> Self:
        """Build a store from a storage account's connection string; the rest as above.

        Raises:
            ConfigurationError: the text is no connection string of a storage account.
        """
        try:
            client = ContainerClient.from_connection_string(connection_string, "any")
        except (ValueError, TypeError):
            # ``from None``: the vendor's message may quote what it was given, with the key.
            raise ConfigurationError(
                "this is not the connection string of a storage account: it has AccountName=... "
                "and AccountKey=... (one of Event Hubs, with Endpoint=sb://..., is for the source)"
            ) from None
        sas_token = urlsplit(client.url).query
        return cls(
            f"{client.scheme}://{client.primary_hostname}" + (f"?{sas_token}" if sas_token else ""),
            container,
            client.credential,
            create_container=create_container,
            request_timeout=request_timeout,
            concurrency_max=concurrency_max,
            legacy_prefix=legacy_prefix,
        )

    async def open(self) -> None:
        if self._azure is not None:
            return
        timeout_s = self._request_timeout.total_seconds()
        transport = _Transport(
            session=_new_session(), connection_timeout=timeout_s, read_timeout=timeout_s
        )
        # One policy repeats requests, ours: the vendor's would hide a lost answer from us.
        client = self._new_client(transport=transport, retry_total=0)
        self._azure = _AzureContainer(client, request_timeout=self._request_timeout, log=self._log)
        try:
            if self._creates_container:
                await retried(self._azure.create)
            await retried(self._azure.check)
        except StoreCorruptError as error:
            await self.close()
            raise ConfigurationError(
                f"{self._place} cannot be used: {error}. It takes a container (create it, or give "
                "create_container=True) and the right to list, read, write and delete its blobs"
            ) from error
        except BaseException:
            await self.close()
            raise
        self._attach(self._azure)

    async def close(self) -> None:
        self._detach()
        azure, self._azure = self._azure, None
        if azure is not None:
            await azure.close()
