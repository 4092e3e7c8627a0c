"""Groups with genuine processors of Azure's SDKs at their defaults: Python's and JavaScript's.

They have other expirations and intervals than this library, and nothing in the store shows them
(``docs/operations.md``). A partition moves only while shares are not even yet.

JavaScript's runs if its packages are installed: ``npm ci`` in
``tests/integration/emulator/javascript``.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzureStore

from checkpointstores.blob import BlobCheckpointStore
from eventproc import ConsumerGroup, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.emulator import EventHubsEmulator
from eventproc.errors import StoreUnavailableError
from eventproc.sources.eventhubs import EventHubSource

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.long,
]

JAVASCRIPT = Path(__file__).parents[1] / "emulator/javascript"
NODE = shutil.which("node")
HOST = "127.0.0.1"
PARTITION_COUNT = 6
SETTLED_S = {"python": 45.0, "javascript": 20.0}
"""How long shares have to be even before nothing may move: longer than the SDK's interval, and for
JavaScript shorter than its expiration, at whose first end partitions would move."""

QUIET_S = 150.0
"""Twice the shortest expiration, of JavaScript, and some more."""

TIMEOUT_S = 400


class Handler(PartitionHandler):
    """Does nothing."""

    async def process_events(self, context, events):
        """Do nothing."""


class StoreAtHost(AzureStore):
    """Leaves the emulator's port out of the names of blobs, as JavaScript's SDK does."""

    async def list_ownership(self, fully_qualified_namespace, *names, **options):
        """List those of the host."""
        return await super().list_ownership(HOST, *names, **options)

    async def list_checkpoints(self, fully_qualified_namespace, *names, **options):
        """List those of the host."""
        return await super().list_checkpoints(HOST, *names, **options)

    async def claim_ownership(self, ownership_list, **options):
        """Claim those of the host."""
        claims = [{**claim, "fully_qualified_namespace": HOST} for claim in ownership_list]
        return await super().claim_ownership(claims, **options)


@asynccontextmanager
async def of_python(hub: str, storage: str, container: str) -> AsyncIterator[None]:
    """Run the processor of the Python client."""

    async def ignore(*_: object) -> None:
        pass

    store = StoreAtHost.from_connection_string(storage, container)
    client = EventHubConsumerClient.from_connection_string(hub, "$Default", checkpoint_store=store)
    async with store, client:
        receiving = asyncio.create_task(client.receive_batch(ignore, starting_position="-1"))
        try:
            yield
        finally:
            await client.close()
            await receiving


@asynccontextmanager
async def of_javascript(hub: str, storage: str, container: str) -> AsyncIterator[None]:
    """Run the processor of the JavaScript client in a process of its own."""
    name = hub.rpartition("EntityPath=")[2]
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), "processor.js", hub, name, "$Default", storage, container),
        cwd=JAVASCRIPT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(20):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


SDKS = {"python": of_python, "javascript": of_javascript}


async def watch(
    store: BlobCheckpointStore, group: ConsumerGroup, member_count: int, settled_s: float
) -> list[str]:
    """Wait until shares are even and have not changed for a while; return what moves after it."""
    loop = asyncio.get_running_loop()
    known: Mapping[str, str | None] = {}
    changed_at_s, settled_at_s, moves = loop.time(), float("inf"), list[str]()
    async with asyncio.timeout(TIMEOUT_S):
        while loop.time() - settled_at_s < QUIET_S:
            await asyncio.sleep(1)
            try:
                records = (await store.list_ownership(group)).ownerships
            except StoreUnavailableError:  # A machine that stood still says nothing about moves.
                continue
            seen = {o.partition_id: o.owner_id for o in records}
            if seen != known:
                changed_at_s = loop.time()
                if settled_at_s < float("inf"):
                    moves.append(f"{known} -> {seen}")
            known = seen
            counts = [[*seen.values()].count(owner_id) for owner_id in {*seen.values()}]
            is_even = len(counts) == member_count and max(counts) - min(counts) <= 1
            if is_even and loop.time() - changed_at_s >= settled_s:
                settled_at_s = min(settled_at_s, loop.time())
    return moves


@pytest.mark.parametrize(
    ("sdks", "expiration_s"),
    [
        pytest.param(("python",), 180, marks=pytest.mark.night),
        pytest.param(("javascript",), 240, marks=pytest.mark.night),
        (("python", "javascript"), 180),
    ],
)
async def test_nothing_moves_in_a_balanced_group_with_azure_sdks_at_their_defaults(
    sdks, expiration_s, storage, container
):
    """Whatever longer expiration this library has: JavaScript's is 60 s, and Python's 180 s."""
    if "javascript" in sdks and (NODE is None or not (JAVASCRIPT / "node_modules").exists()):
        pytest.skip("needs Node and `npm ci` in tests/integration/emulator/javascript")
    ours, watching = (
        BlobCheckpointStore.from_connection_string(storage, container, namespace=HOST)
        for _ in range(2)
    )
    async with AsyncExitStack() as stack:
        emulator = stack.enter_context(EventHubsEmulator({"hub": PARTITION_COUNT}))
        hub = emulator.connection_string_for("hub")
        source = EventHubSource.from_connection_string(hub)
        for sdk in sdks:
            await stack.enter_async_context(SDKS[sdk](hub, storage, container))
        processor = EventProcessor(
            source=source,
            store=ours,
            handler=Handler,
            config=EventProcessorConfig(ownership_expiration=timedelta(seconds=expiration_s)),
        )
        await stack.enter_async_context(processor)
        await stack.enter_async_context(watching)
        group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name="$Default",
        )
        settled_s = max(SETTLED_S[sdk] for sdk in sdks)
        moves = await watch(watching, group, len(sdks) + 1, settled_s)
        lost_count = processor.statistics().lost_count

    assert moves == []
    assert lost_count <= PARTITION_COUNT
