"""The requests of the blob store to Azure's client."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from checkpointstores.blob._azure_container import AzureContainer
from eventproc._base.azure_storage.blobs import BLOBS
from eventproc._base.azure_storage.connection import Connection
from eventproc._base.logs import get_logger
from eventproc.errors import StoreUnavailableError

PAGE = """<?xml version="1.0"?><EnumerationResults><Blobs/>{}</EnumerationResults>"""


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
        content = PAGE.format(marker).encode()
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
