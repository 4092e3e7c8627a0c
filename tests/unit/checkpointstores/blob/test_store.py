"""The requests of the blob store to Azure's client."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from checkpointstores.blob.store import _AzureContainer
from eventproc.errors import StoreUnavailableError
from eventproc.logs import get_logger

PAGE = """<?xml version="1.0"?><EnumerationResults><Blobs/>{}</EnumerationResults>"""


class Pages:
    """As much of Azure's client as a listing uses: pages without blobs, each with its headers."""

    url = "https://account.blob.core.windows.net/container"
    api_version = "2025-01-05"

    def __init__(self, *headers: dict[str, str]) -> None:
        self._headers = list(headers)

    @property
    def _pipeline(self) -> Any:
        return self

    async def run(self, _request: object) -> Any:
        """Answer with the next page."""
        headers = self._headers.pop(0)
        marker = "<NextMarker>next</NextMarker>" if self._headers else "<NextMarker/>"
        content = PAGE.format(marker).encode()
        answer = SimpleNamespace(status_code=200, headers=headers, content=content)
        return SimpleNamespace(http_response=answer)


def container(*headers: dict[str, str]) -> _AzureContainer:
    """A container with one listing, whose pages have these headers."""
    client: Any = Pages(*headers)
    log = get_logger("eventproc.stores.test")
    return _AzureContainer(client, "c", request_timeout=timedelta(seconds=5), log=log)


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
