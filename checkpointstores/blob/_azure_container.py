"""A blob container through Azure's client. Each call is one request without retries.

Listings are parsed here: the parser of Azure's client takes ten times as long, and a group is
listed in every cycle.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote

from azure.core.exceptions import HttpResponseError
from azure.core.rest import AsyncHttpResponse, HttpRequest
from azure.storage.blob import BlobProperties
from azure.storage.blob.aio import BlobClient, ContainerClient

from checkpointstores._requests import Written, connect
from checkpointstores.blob._container import BlobItem, Listing
from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc._base.azure_storage.connection import Connection, code_of, if_is, unless_exists
from eventproc._base.logs import Logger
from eventproc.errors import StoreRejectedError

FOLDER_METADATA = "hdi_isfolder"
"""Metadata key of the stub of a directory, on accounts with a hierarchical namespace."""

BLOB_CLIENTS_MAX: Final = 512
"""How many of Azure's clients for a single blob are kept: one takes 33 kB. To make one takes 0.05
ms, which a processor should not pay for each checkpoint."""

_NO_BLOB: Final = "eventproc-asks-whether-it-may-read"
"""A blob that does not exist. Reading it when a store is opened checks the right to read."""


class AzureContainer:
    """A ``BlobContainer`` through Azure's client."""

    def __init__(
        self, connection: Connection[ContainerClient], *, is_created: bool, log: Logger
    ) -> None:
        """With *is_created* the container is created if it does not exist."""
        self._connection = connection
        self._is_created = is_created
        self._log = log
        self._blob_by_name: dict[str, BlobClient] = {}
        self._lists_raw = True

    async def open(self) -> None:
        steps = (self._create, self._check) if self._is_created else (self._check,)
        await connect(self._connection, *steps)

    async def close(self) -> None:
        self._blob_by_name.clear()
        await self._connection.close()

    async def _check(self) -> None:
        """List and read, to check the credential's rights without changing anything."""
        await self._connection.ask(Right.LIST, self._list_one)
        await self.read(_NO_BLOB)

    async def _list_one(self) -> None:
        await anext(self._connection.client.list_blobs(results_per_page=1).by_page(), None)

    async def _create(self) -> None:
        """Create the container unless it exists."""
        try:
            await self._connection.ask(Right.LIST, self._list_one)
        except StoreRejectedError as error:
            cause = error.__cause__
            if isinstance(cause, HttpResponseError) and code_of(cause) == "ContainerNotFound":
                create = self._connection.client.create_container
                call = partial(unless_exists, create, "ContainerAlreadyExists")
                await self._connection.ask(Right.CREATE, call)
            # Else ``_check`` raises it. The service's refusal of a listing has the true reason:
            # Azurite's answer to a creation in no account has not even its headers.

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
        url = self._connection.client.url
        url += f"{'&' if '?' in url else '?'}restype=container&comp=list&include=metadata"
        url += f"&prefix={quote(prefix, safe='')}"
        items: list[BlobItem] = []
        as_of: datetime | None = None
        marker = ""
        while True:
            at = f"&marker={quote(marker, safe='')}" if marker else ""
            page = await self._connection.ask(Right.LIST, partial(self._get, url + at))
            as_of = as_of or self._connection.time_of(page)
            found, marker = parse_page(page.content)
            items += found
            if not marker:
                return Listing(items=tuple(items), as_of=as_of)

    async def _get(self, url: str) -> AsyncHttpResponse:
        client = self._connection.client
        request = HttpRequest("GET", url, headers={"x-ms-version": client.api_version})
        # The client's own pipeline signs the request; only its XML parser is not used.
        pipeline: Any = client._pipeline  # noqa: SLF001
        response: AsyncHttpResponse = (await pipeline.run(request)).http_response
        if response.status_code != HTTPStatus.OK:
            raise HttpResponseError(response=response)
        return response

    async def _list_by_vendor(self, prefix: str) -> Listing:
        dates: list[datetime] = []
        pages = self._connection.client.list_blobs(
            name_starts_with=prefix,
            include=["metadata"],
            raw_response_hook=lambda answer: dates.append(
                self._connection.time_of(answer.http_response)
            ),
        ).by_page()
        items = []
        while (
            page := await self._connection.ask(Right.LIST, lambda: anext(pages, None))
        ) is not None:
            items += [_as_item(blob.name, blob) async for blob in page]
        return Listing(items=tuple(items), as_of=dates[0])

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
            found = await self._connection.ask(Right.READ, blob.get_blob_properties)
        except ConditionFailedError:
            return None
        body = b""
        if body_bytes_max and found.size:
            body = await self._connection.ask(
                Right.READ, lambda: _download(blob, found.etag, body_bytes_max + 1)
            )
        return replace(_as_item(name, found), body=body)

    async def put(
        self, name: str, metadata: Mapping[str, str], body: bytes | None, *, etag: str | None
    ) -> Written:
        blob, given = self._blob(name), dict(metadata)
        call: Any
        if body is None and etag is not None:
            call = partial(blob.set_blob_metadata, given, **if_is(etag))
        else:
            # Without ``overwrite`` the client sends the condition that there is no blob yet.
            condition = {} if etag is None else if_is(etag)
            call = partial(
                blob.upload_blob,
                body or b"",
                metadata=given,
                overwrite=etag is not None,
                **condition,
            )
        answer: Mapping[str, Any] = await self._connection.ask(Right.WRITE, call)
        return Written(etag=str(answer["etag"]).strip('"'), last_modified=answer["last_modified"])

    async def delete(self, name: str, *, etag: str) -> None:
        await self._connection.ask(
            Right.DELETE, lambda: self._blob(name).delete_blob(**if_is(etag))
        )

    def _blob(self, name: str) -> BlobClient:
        if name not in self._blob_by_name:
            if len(self._blob_by_name) >= BLOB_CLIENTS_MAX:
                self._blob_by_name.clear()
            self._blob_by_name[name] = self._connection.client.get_blob_client(name)
        return self._blob_by_name[name]


async def _download(blob: BlobClient, etag: str, length: int) -> bytes:
    stream = await blob.download_blob(offset=0, length=length, **if_is(etag))
    content: bytes = await stream.readall()
    return content


def _as_item(name: str, found: BlobProperties) -> BlobItem:
    metadata = found.metadata or {}
    return BlobItem(
        name=name,
        etag=(found.etag or "").strip('"'),
        last_modified=found.last_modified,
        metadata=metadata,
        is_folder=FOLDER_METADATA in metadata,
        is_leased=found.lease.state == "leased",
    )


PIECE_BYTES: Final = 64 * 1024
"""Bytes to parse at a time: the parser holds the GIL, and a page may have megabytes."""


def parse_page(xml: bytes) -> tuple[Sequence[BlobItem], str]:
    """Return the blobs of a page, and the marker of the next page, empty on the last.

    Raises:
        ValueError: the XML is not a listing.
    """
    # A processor renews many records within a few seconds, so most times on a page are equal.
    time_of = lru_cache(maxsize=None)(parsedate_to_datetime)
    items: list[BlobItem] = []
    element = None
    try:
        for element in _elements(xml):
            # A metadata entry may have the same tag, but it has no child elements.
            if element.tag == "Blob" and len(element):
                items.append(_item_in(element, time_of))
                element.clear()
    except ET.ParseError as error:
        raise ValueError(f"not a listing: {error}") from error
    assert element is not None, "without an element, the parser raises ParseError"
    blobs = element.find("Blobs")
    if blobs is None:
        raise ValueError(f"not a listing, but <{element.tag}>")
    if len(blobs.findall("Blob")) != len(items):
        raise ValueError("not a listing: it has blobs without a name")
    return items, element.findtext("NextMarker") or ""


def _elements(xml: bytes) -> Iterator[ET.Element]:
    """Yield each element when it is complete, the outermost last.

    The caller clears an element after reading it. Otherwise a listing of 5,000 blobs would become a
    tree of 100,000 objects, which Python's garbage collector traverses repeatedly.
    """
    parser: Any = ET.XMLPullParser(["end"])  # its type stub does not know the events' types
    for begin in range(0, len(xml), PIECE_BYTES):
        parser.feed(xml[begin : begin + PIECE_BYTES])
        yield from (element for _, element in parser.read_events())
    parser.close()  # the parser may have kept some elements back until the end
    yield from (element for _, element in parser.read_events())


def _item_in(blob: ET.Element, time_of: Callable[[str], datetime]) -> BlobItem:
    name, properties, entries = blob.find("Name"), blob.find("Properties"), blob.find("Metadata")
    if name is None or not name.text or properties is None:
        raise ValueError("not a listing: it has blobs without a name or without properties")
    # Names with characters that XML cannot carry are percent-encoded.
    text = unquote(name.text) if name.get("Encoded") == "true" else name.text
    metadata = {entry.tag: entry.text for entry in entries} if entries is not None else {}
    return BlobItem(
        name=text,
        etag=(properties.findtext("Etag") or "").strip('"'),
        last_modified=time_of(properties.findtext("Last-Modified") or ""),
        metadata=metadata,
        is_folder=properties.findtext("ResourceType") == "directory" or FOLDER_METADATA in metadata,
    )
