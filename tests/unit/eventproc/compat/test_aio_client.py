"""What the client for an event loop refuses before anything connects."""

import pytest
from azure.core.credentials import AzureNamedKeyCredential

from eventproc.compat.azure_eventhub.aio import EventHubConsumerClient


@pytest.mark.parametrize("method", ["receive", "receive_batch"])
async def test_an_argument_that_azures_method_does_not_have_is_refused(method):
    """It may be mistyped. The client for threads ignores it, as Azure's does."""
    key = AzureNamedKeyCredential("name", "key")
    client = EventHubConsumerClient("namespace", "hub", "$Default", key)
    with pytest.raises(TypeError, match="'max_wait'"):
        await getattr(client, method)(print, max_wait=3)
    await client.close()
