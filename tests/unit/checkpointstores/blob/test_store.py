"""The requests of the blob store to Azure's client."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from checkpointstores.blob.store import _AzureContainer
from eventproc.errors import StoreUnavailableError
from eventproc.logs import get_logger

PAGE = b"""<?xml version="1.0"?><EnumerationResults><Blobs/><NextMarker/></EnumerationResults>"""


class OnePage:
    """As much of Azure's client as a listing uses: one page without blobs, with these headers."""

    url = "https://account.blob.core.windows.net/container"
    api_version = "2025-01-05"

    def __init__(self, headers: dict[str, str]) -> None:
        answer = SimpleNamespace(status_code=200, headers=headers, content=PAGE)
        self._result = SimpleNamespace(http_response=answer)

    @property
    def _pipeline(self) -> Any:
        return self

    async def run(self, _request: object) -> Any:
        """Answer a request."""
        return self._result


def container(headers: dict[str, str]) -> _AzureContainer:
    """A container whose listings have these headers."""
    client: Any = OnePage(headers)
    log = get_logger("eventproc.stores.test")
    return _AzureContainer(client, "c", request_timeout=timedelta(seconds=5), log=log)


async def test_a_listing_has_the_time_of_the_header_date():
    """By the service's clock, and not by this machine's."""
    listing = await container({"Date": "Fri, 20 Nov 2026 20:14:06 GMT"}).list("prefix")

    assert listing.as_of == datetime(2026, 11, 20, 20, 14, 6, tzinfo=UTC)


async def test_a_listing_without_the_header_date_is_refused():
    """Without the service's time no record can be called expired; the next request may have it."""
    with pytest.raises(StoreUnavailableError, match="without the header Date: check the proxies"):
        await container({}).list("prefix")
