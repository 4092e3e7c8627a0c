"""The blob store over a storage service that answers as a test wants it to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from checkpointstores.blob import BlobCheckpointStore
from eventproc.errors import StoreUnavailableError
from eventproc.models import ConsumerGroup

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HTTP_DATE = "%a, %d %b %Y %H:%M:%S GMT"
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://x/" ContainerName="c"><Blobs>
<Blob><Name>ns/hub/$default/ownership/{number}</Name><Properties>
  <Last-Modified>Fri, 20 Nov 2026 11:59:59 GMT</Last-Modified><Etag>0x8D1</Etag>
  <Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>
</Properties><Metadata><ownerid>a</ownerid></Metadata></Blob>
</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"""


class Service:
    """A container whose listing has two pages. The second comes a minute after the first."""

    is_out = False

    async def answer(self, request: web.Request) -> web.Response:
        """Answer as the service, with the id of the request."""
        answer = self._answer(request)
        answer.headers["x-ms-request-id"] = "1"
        return answer

    def _answer(self, request: web.Request) -> web.Response:
        """Answer a listing; any blob that is read does not exist."""
        if self.is_out:
            return web.Response(status=503, headers={"x-ms-error-code": "ServerBusy"})
        if request.query.get("comp") != "list":
            return web.Response(status=404, headers={"x-ms-error-code": "BlobNotFound"})
        number = 1 if request.query.get("marker") else 0
        at = NOON + timedelta(minutes=number)
        return web.Response(
            text=PAGE.format(number=number, marker="" if number else "next"),
            content_type="application/xml",
            headers={"Date": at.strftime(HTTP_DATE)},
        )


@asynccontextmanager
async def served(service: Service) -> AsyncIterator[BlobCheckpointStore]:
    """Yield a store, which is not open, over the service."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    store = BlobCheckpointStore(f"http://127.0.0.1:{port}/account", "container", "a2V5")
    try:
        yield store
    finally:
        await store.close()
        await runner.cleanup()


@pytest.mark.parametrize("lists_raw", [True, False])
async def test_a_listing_of_several_pages_is_as_old_as_its_first(lists_raw):
    """With a later time, records of the first page would look older than they are: expired."""
    async with served(Service()) as store:
        await store.open()
        azure: Any = store._blobs.vendor
        azure._lists_raw = lists_raw
        snapshot = await store.list_ownership(GROUP)

    assert [each.partition_id for each in snapshot.ownerships] == ["0", "1"]
    assert snapshot.as_of == NOON


async def test_a_store_that_could_not_be_opened_can_be_opened_later():
    """When the service answers again; nothing is left of the first attempt."""
    service = Service()
    service.is_out = True
    async with served(service) as store:
        with pytest.raises(StoreUnavailableError):
            await store.open()
        service.is_out = False
        await store.open()
        snapshot = await store.list_ownership(GROUP)

    assert len(snapshot.ownerships) == 2
