"""What the client for an event loop refuses, and how it closes, before anything connects."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential

from eventproc.compat._aio_client import _Caller
from eventproc.compat._caller import Delivery
from eventproc.compat.azure_eventhub.aio import EventHubConsumerClient
from eventproc.testing import run_virtual

KEY = AzureNamedKeyCredential("name", "key")


@pytest.mark.parametrize("method", ["receive", "receive_batch"])
async def test_an_argument_that_azures_method_does_not_have_is_refused(method):
    """It may be mistyped. The client for threads ignores it, as Azure's does."""
    client = EventHubConsumerClient("namespace", "hub", "$Default", KEY)
    with pytest.raises(TypeError, match="'max_wait'"):
        await getattr(client, method)(print, max_wait=3)
    await client.close()


@pytest.mark.parametrize("takes_batches", [False, True])
def test_close_in_a_callback_does_not_wait_for_the_end_of_that_callback(takes_batches):
    """It would wait for ever. Elsewhere, it waits until ``receive`` has ended."""

    async def scenario() -> None:
        client, caller = EventHubConsumerClient("namespace", "hub", "$Default", KEY), _Caller()
        some: Any = SimpleNamespace(is_ending=False, sequence_number=0)

        async def callback(*_: object) -> None:
            async with asyncio.timeout(60):
                await client.close()

        with client._registry.receiving(None):
            if takes_batches:
                await caller.call(callback, None, [])
            else:
                await caller.each(Delivery(callback, None, some, [some], some))

    run_virtual(scenario())
