"""Requests of the blob store to Azure's client, and the fast parser of a listing."""

import codecs
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from checkpointstores.blob._azure_container import PIECE_BYTES, AzureContainer, parse_page
from checkpointstores.blob._container import BlobItem
from eventproc._base.azure_storage.blobs import BLOBS
from eventproc._base.azure_storage.connection import Connection
from eventproc._base.logs import get_logger
from eventproc.errors import StoreUnavailableError

EMPTY_PAGE = """<?xml version="1.0"?><EnumerationResults><Blobs/>{}</EnumerationResults>"""


class Pages:
    """As much of Azure's client as a listing uses: pages without blobs, each with its headers."""

    url = "https://account.blob.core.windows.net/container"
    api_version = "2025-01-05"

    status_code = 200

    def __init__(self, *headers: dict[str, str]) -> None:
        self._headers = list(headers)
        self.urls: list[str] = []

    @property
    def _pipeline(self) -> Any:
        return self

    async def run(self, request: Any) -> Any:
        """Answer with the next page."""
        self.urls.append(request.url)
        headers = self._headers.pop(0)
        marker = "<NextMarker>next</NextMarker>" if self._headers else "<NextMarker/>"
        content = EMPTY_PAGE.format(marker).encode()
        answer = SimpleNamespace(
            status_code=self.status_code,
            headers=headers,
            content=content,
            reason="",
            request=request,
        )
        return SimpleNamespace(http_response=answer)


def container(*headers: dict[str, str]) -> AzureContainer:
    """A container with one listing, whose pages have these headers."""
    return container_of(Pages(*headers))


def container_of(client: Any) -> AzureContainer:
    """A container over this client."""
    connection = Connection(
        BLOBS,
        "https://account.blob.core.windows.net",
        "container",
        None,
        request_timeout=timedelta(seconds=5),
        ca_bundle=None,
        http_proxy=None,
    )
    connection._client = client
    log = get_logger("eventproc.stores.test")
    return AzureContainer(connection, is_created=False, log=log)


async def test_a_listing_has_the_time_of_the_header_date():
    """By the service's clock, and not by this machine's."""
    listing = await container({"Date": "Fri, 20 Nov 2026 20:14:06 GMT"}).list("prefix")

    assert listing.as_of == datetime(2026, 11, 20, 20, 14, 6, tzinfo=UTC)


async def test_a_listing_of_several_pages_has_the_time_of_the_first():
    """An owner on the first page that renews before the last page is read must not seem expired."""
    pages = [{"Date": f"Fri, 20 Nov 2026 20:14:{second:02} GMT"} for second in (6, 7, 50)]
    listing = await container(*pages).list("prefix")

    assert listing.as_of == datetime(2026, 11, 20, 20, 14, 6, tzinfo=UTC)


async def test_a_listing_without_the_header_date_is_refused():
    """Without the service's time no record can be called expired; the next request may have it."""
    with pytest.raises(StoreUnavailableError, match="without the header Date: check the proxies"):
        await container({}).list("prefix")


@pytest.mark.parametrize("is_second", [False, True])
async def test_a_page_that_the_service_cannot_answer_fails_the_listing(caplog, is_second):
    """A listing without it would lack records; and the parser is not to blame."""

    class Busy(Pages):
        async def run(self, request: Any) -> Any:
            self.status_code = 200 if is_second and not self.urls else 503
            return await super().run(request)

    at = {"Date": "Fri, 20 Nov 2026 20:14:06 GMT"}
    with pytest.raises(StoreUnavailableError, match="cannot answer now"):
        await container_of(Busy(at, at)).list("prefix")

    assert caplog.records == []


async def test_each_page_is_asked_for_by_the_marker_of_the_one_before():
    """With the same prefix, in which characters of URLs are encoded."""
    client = Pages(*({"Date": "Fri, 20 Nov 2026 20:14:06 GMT"} for _ in range(2)))
    await container_of(client).list("a b/&")

    first = f"{Pages.url}?restype=container&comp=list&include=metadata&prefix=a%20b%2F%26"
    assert client.urls == [first, f"{first}&marker=next"]


PAGE = b"""<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://x/" ContainerName="c"><Blobs>
<Blob><Name>a/ownership/0</Name><Properties>
  <Last-Modified>Fri, 20 Nov 2026 20:00:01 GMT</Last-Modified><Etag>0x8D1</Etag>
</Properties><Metadata><ownerid>me</ownerid><empty /></Metadata></Blob>
<Blob><Name Encoded="true">a%%2Fb%%EF%%BF%%BE</Name><Properties>
  <Last-Modified>Fri, 20 Nov 2026 20:00:02 GMT</Last-Modified><Etag>"0x8D2"</Etag>
  <ResourceType>directory</ResourceType></Properties></Blob>
<BlobPrefix><Name>a/</Name></BlobPrefix>
</Blobs><NextMarker>%s</NextMarker></EnumerationResults>"""


def test_a_page_has_blobs_and_the_next_marker():
    """Each part that a record needs; ETags without quotes, encoded names decoded."""
    items, marker = parse_page(PAGE % b"next")

    assert marker == "next"
    assert items == [
        BlobItem(
            name="a/ownership/0",
            etag="0x8D1",
            last_modified=datetime(2026, 11, 20, 20, 0, 1, tzinfo=UTC),
            metadata={"ownerid": "me", "empty": None},
        ),
        BlobItem(
            name="a/b\ufffe",
            etag="0x8D2",
            last_modified=datetime(2026, 11, 20, 20, 0, 2, tzinfo=UTC),
            is_folder=True,
        ),
    ]


def test_the_last_page_has_no_marker():
    """An empty marker, or none, ends the listing."""
    assert parse_page(PAGE % b"")[1] == ""
    assert parse_page((PAGE % b"").replace(b"<NextMarker></NextMarker>", b""))[1] == ""


def test_a_name_that_is_not_marked_as_encoded_is_taken_as_it_is():
    """It may have percent signs of its own."""
    (_, second), _ = parse_page((PAGE % b"").replace(b' Encoded="true"', b""))

    assert second.name == "a%2Fb%EF%BF%BE"


NO_PROPERTIES = (
    b"<EnumerationResults><Blobs><Blob><Name>a</Name></Blob></Blobs></EnumerationResults>"
)


NO_NAME = (
    b"<EnumerationResults><Blobs><Blob><Properties>"
    b"<Last-Modified>Fri, 20 Nov 2026 20:00:01 GMT</Last-Modified></Properties></Blob></Blobs>"
    b"</EnumerationResults>"
)
EMPTY_NAME = NO_NAME.replace(b"<Properties>", b"<Name/><Properties>")


NO_PARTS = b"<EnumerationResults><Blobs><Blob/></Blobs></EnumerationResults>"


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"<html>",
        b"<html><body/></html>",
        b"\x00",
        NO_PROPERTIES,
        NO_NAME,
        EMPTY_NAME,
        NO_PARTS,
        PAGE % b"" + b"<more/>",
        (PAGE % b"")[:-1],
    ],
)
def test_other_xml_raises(page):
    """The caller then uses the vendor's parser."""
    with pytest.raises(ValueError, match="not a listing"):
        parse_page(page)


def test_a_page_with_a_byte_order_mark_is_parsed_in_pieces():
    """As Azure sends it. A piece may end within a name, or within a character."""
    blob = (
        "<Blob><Name>é%d</Name><Properties>"
        "<Last-Modified>Fri, 20 Nov 2026 20:00:01 GMT</Last-Modified></Properties></Blob>"
    )
    blobs = "".join(blob % number for number in range(3 * PIECE_BYTES // len(blob)))
    page = f"<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>"

    items, _ = parse_page(codecs.BOM_UTF8 + page.encode())

    assert [item.name for item in items] == [f"é{number}" for number in range(len(items))]
    assert len(items) == blobs.count("<Blob>")


def test_metadata_may_have_the_names_of_the_listings_elements():
    """They stay metadata of their blob."""
    entries = b"<Blob>x</Blob><NextMarker>y</NextMarker><Name>z</Name><Etag>w</Etag>"

    ((first, second), marker) = parse_page(PAGE.replace(b"<empty />", entries) % b"next")

    assert first.metadata == {
        "ownerid": "me",
        "Blob": "x",
        "NextMarker": "y",
        "Name": "z",
        "Etag": "w",
    }
    assert (first.name, first.etag, second.name) == ("a/ownership/0", "0x8D1", "a/b\ufffe")
    assert marker == "next"
