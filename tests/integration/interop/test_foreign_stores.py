"""The checkpoint stores of Azure's SDKs for Java and Go, and ours, on each other's blobs."""

from dataclasses import replace

import pytest

from checkpointstores.blob import BlobCheckpointStore
from eventproc.models import CheckpointUpdate, ConsumerGroup, OwnershipClaim, WriteOutcome
from tests.contract.golden_records import CHECKPOINTS, OWNERSHIP
from tests.integration.emulator.foreign_clients import SDKS, ForeignClient

pytestmark = pytest.mark.long

GROUP = ConsumerGroup(
    fully_qualified_namespace="Contoso.servicebus.windows.net", eventhub_name="Orders"
)
NAMES = {
    "namespace": GROUP.fully_qualified_namespace,
    "hub": GROUP.eventhub_name,
    "group": GROUP.name,
}


@pytest.fixture(name="client", scope="module", params=SDKS)
def _client(request):
    """Yield a running client."""
    with ForeignClient(request.param) as client:
        yield client


@pytest.fixture(name="ask")
def _ask(client, storage, container):
    """Return a function that uses the client's store, under the group's names as configured."""
    return lambda do, records=None: client.ask(
        do,
        storage=storage,
        container=container,
        **NAMES,
        records=[NAMES | record for record in records or ()],
    )


@pytest.fixture(name="store")
def _store(storage, container):
    """Return our store on the same container, which keeps names as configured, too."""
    return BlobCheckpointStore.from_connection_string(storage, container, exact_names=True)


async def test_their_stores_read_every_record_of_ours(ask, store):
    """Owned, released, with and without what only we write, at any kind of position."""
    async with store:
        await store.claim_ownership(GROUP, OWNERSHIP)
        for partition_id, updates in CHECKPOINTS.items():
            found = None
            for update in updates:
                placed = replace(update, partition_id=partition_id, replaces=found)
                found = (await store.update_checkpoint(GROUP, placed)).checkpoint
        listed = {one.partition_id: one for one in await store.list_checkpoints(GROUP)}
    owners = {one["partition_id"]: one["owner_id"] for one in ask("ownerships")}
    positions = {
        one["partition_id"]: (one["offset"], one["sequence_number"]) for one in ask("checkpoints")
    }

    assert owners == {"0": "host-1", "1": "", "2": "K%C3%B6ln%2050%25"}
    assert positions == {
        one.partition_id: (one.offset, one.sequence_number) for one in listed.values()
    }


async def test_ours_reads_and_replaces_every_record_of_theirs(ask, store):
    """The record that one side has replaced is lost to the other's condition."""
    claimed = ask("claim", [{"partition_id": p, "owner_id": f"a {p}"} for p in "01"])
    etags = {one["partition_id"]: one["etag"] for one in claimed}  # Java returns them as they come
    ask("claim", [{"partition_id": "1", "owner_id": "", "etag": etags["1"]}])
    ask("checkpoint", [{"partition_id": "0", "offset": "4200", "sequence_number": 42}])
    async with store:
        owned, released = (await store.list_ownership(GROUP)).ownerships
        known = await store.read_checkpoint(GROUP, "0")
        claim = OwnershipClaim(partition_id="0", owner_id="b", expected_etag=owned.etag, epoch=7)
        [won] = await store.claim_ownership(GROUP, [claim])
        lost = ask("claim", [{"partition_id": "0", "owner_id": "a 0", "etag": etags["0"]}])
        update = CheckpointUpdate(
            partition_id="0", offset="4300", sequence_number=43, replaces=known, writer="w"
        )
        moved = await store.update_checkpoint(GROUP, update)
        ask("checkpoint", [{"partition_id": "0", "offset": "4400", "sequence_number": 44}])
        again = await store.read_checkpoint(GROUP, "0")

    assert (owned.owner_id, released.owner_id) == ("a 0", None)
    assert known is not None
    assert (known.offset, known.sequence_number) == ("4200", 42)
    assert (won.outcome, lost) == (WriteOutcome.WON, [])
    assert moved.outcome is WriteOutcome.WON
    assert again is not None
    assert (again.offset, again.sequence_number, again.writer) == ("4400", 44, None)
