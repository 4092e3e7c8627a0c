"""A program that gives one credential to source, store and publisher."""

import asyncio
from datetime import timedelta

import azure.identity
import azure.identity.aio
import pytest

from checkpointstores.blob import BlobCheckpointStore
from eventproc import EventProcessor, PartitionHandler
from eventproc.models import OutgoingEvent
from eventproc.sources.eventhubs import EventHubOptions, EventHubPublisher, EventHubSource

from .conftest import NAMESPACE


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # The blocking one's own sessions.
@pytest.mark.parametrize("kind", [azure.identity, azure.identity.aio])
async def test_one_credential_serves_source_store_and_publisher(
    kind, hub, account, box, tls, identity, monkeypatch
):
    """The store has an event loop of its own, where Azure's asynchronous ones do not work."""
    for name, value in identity.env.items():
        monkeypatch.setenv(name, value)
    credential = kind.DefaultAzureCredential()
    options = EventHubOptions(custom_endpoint=f"sb://127.0.0.1:{hub.port}", ca_bundle=str(tls.ca))
    handled = asyncio.Event()

    class Handler(PartitionHandler):
        async def process_event(self, context, event):
            handled.set()

    processor = EventProcessor(
        source=EventHubSource(NAMESPACE, "orders", credential, options=options),
        store=BlobCheckpointStore(account.endpoint, box, credential, ca_bundle=str(tls.ca)),
        handler=Handler,
    )
    publisher = EventHubPublisher(NAMESPACE, "orders", credential, options=options)
    async with publisher, processor:
        await publisher.publish([OutgoingEvent(body=b"a")], patience=timedelta(minutes=1))
        async with asyncio.timeout(60):
            await handled.wait()
    closing = credential.close()
    if closing is not None:
        await closing

    assert set(identity.asked) == {"https://eventhubs.azure.net/", "https://storage.azure.com"}
