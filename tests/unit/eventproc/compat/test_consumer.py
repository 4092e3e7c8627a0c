"""The calls of ``receive`` of one client."""

import asyncio
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.compat._consumer import Registry
from eventproc.compat.azure_eventhub.aio import EventHubConsumerClient

ADDRESS = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=a2V5;EntityPath=hub"


def test_a_close_while_the_processor_is_being_built_ends_the_call():
    """The client for threads takes some milliseconds for that."""
    registry, ends = Registry("$Default"), []
    with registry.receiving(None) as call:
        (ended,) = registry.close()
        call.on_close(lambda: ends.append("end"))
        assert ends == ["end"]
        assert not ended.done()

    assert ended.done()


def test_a_call_for_all_partitions_and_one_for_a_partition_exclude_each_other():
    """Two calls for two partitions do not."""
    registry = Registry("$Default")
    with registry.receiving("0"), registry.receiving("1"):
        for partition_id in ("0", None):
            with (
                pytest.raises(ValueError, match="already receiving"),
                registry.receiving(partition_id),
            ):
                pass
    with (
        registry.receiving(None),
        pytest.raises(ValueError, match="from all partitions"),
        registry.receiving("0"),
    ):
        pass


async def test_two_partitions_cannot_share_a_store_that_serves_one_call():
    """The second call is refused at once; it would fail in each attempt to start. After the first
    one has ended, the store is free.
    """

    async def on_event(_: Any, __: Any) -> None:
        """Get nothing: there is no hub."""

    client = EventHubConsumerClient.from_connection_string(
        ADDRESS, "$Default", checkpoint_store=MemoryCheckpointStore()
    )
    async with client:
        for partition_id in ("0", "1"):
            first = asyncio.ensure_future(client.receive(on_event, partition_id=partition_id))
            await asyncio.sleep(0)
            with pytest.raises(ValueError, match="a store of its own"):
                async with asyncio.timeout(10):
                    await client.receive(on_event, partition_id="2")
            first.cancel()
            await asyncio.wait([first])
