"""Names of blobs that some Azure SDKs spell differently: without the port, or in lower case."""

import pytest
from azure.storage.blob import ContainerClient

from checkpointstores.blob import BlobCheckpointStore
from eventproc.errors import ConfigurationError
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim, WriteOutcome

OTHER_SPELLING = "group_spelled_otherwise"


WITH_PORT = ConsumerGroup(fully_qualified_namespace="localhost:5672", eventhub_name="Hub")
WITHOUT_PORT = ConsumerGroup(fully_qualified_namespace="localhost", eventhub_name="Hub")


@pytest.fixture
def azure(storage, container):
    """Yield the vendor's own client, to write and read as other programs do."""
    with ContainerClient.from_connection_string(storage, container) as client:
        yield client


@pytest.fixture
def store(storage, container):
    """Return an unopened store over the same container."""
    return BlobCheckpointStore.from_connection_string(storage, container)


def put(azure, name, **metadata):
    """Write a blob as some other program would."""
    azure.upload_blob(name, b"", metadata=metadata)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(WITH_PORT, "localhost"), (WITHOUT_PORT, "localhost:5672")]
)
async def test_a_group_under_another_spelling_of_the_namespace_is_logged_once(
    azure, store, caplog, ours, theirs
):
    """JavaScript's SDK leaves the port out, which makes two groups; the warning names the
    remedy."""
    put(azure, f"{theirs}/hub/$default/ownership/0", ownerid="js")
    put(azure, f"{theirs}/hub/$default/checkpoint/0", offset="1", sequencenumber="1")
    async with store:
        found = [await store.list_ownership(ours) for _ in range(3)]

    [logged] = [r.__dict__ for r in caplog.records if getattr(r, "event", "") == OTHER_SPELLING]
    assert [snapshot.ownerships for snapshot in found] == [()] * 3
    assert (logged["namespace"], logged["other_namespace"]) == (ours.key[0], theirs)
    assert f"BlobCheckpointStore(namespace={theirs!r})" in logged["remedy"]


async def test_another_hub_or_a_released_record_is_not_a_second_group(azure, store, caplog):
    """Nothing is logged if the other spelling has no live owner of the same hub and group."""
    put(azure, "localhost/hub/$default/ownership/0", ownerid="")
    put(azure, "localhost/other/$default/ownership/0", ownerid="js")
    put(azure, "localhost:1/other/$default/ownership/0", ownerid="js")
    put(azure, "localhost:1/hub/$default/checkpoint/0", ownerid="js")
    async with store:
        await store.list_ownership(WITH_PORT)
        await store.list_ownership(WITHOUT_PORT)

    assert [r for r in caplog.records if getattr(r, "event", "") == OTHER_SPELLING] == []


@pytest.mark.parametrize(
    ("theirs", "settings"),
    [
        ("localhost/Hub/$Default", "namespace='localhost', exact_names=True"),
        ("localhost:5672/Hub/$Default", "exact_names=True"),
    ],
)
async def test_a_group_in_another_case_is_logged_with_the_settings_to_share_it(
    azure, store, caplog, theirs, settings
):
    """Go's and Rust's SDKs keep the case. Records of other groups show nothing."""
    put(azure, f"{theirs}/ownership/0", ownerid="go")
    put(azure, "localhost/Other/$Default/ownership/0", ownerid="go")
    async with store:
        await store.list_ownership(WITH_PORT)

    [logged] = [r.__dict__ for r in caplog.records if getattr(r, "event", "") == OTHER_SPELLING]
    assert logged["blob"] == f"{theirs}/ownership/0"
    assert f"BlobCheckpointStore({settings})" in logged["remedy"]
    assert "names=exact" in logged["remedy"]


async def test_names_are_kept_as_configured_on_request(azure, storage, container, caplog):
    """Then the group is that of Go's and Rust's SDKs, and one in lower case is another."""
    put(azure, "localhost:5672/Hub/$Default/ownership/0", ownerid="go")
    put(azure, "localhost:5672/hub/$default/ownership/0", ownerid="python")
    store = BlobCheckpointStore.from_connection_string(storage, container, exact_names=True)
    async with store:
        [owned] = (await store.list_ownership(WITH_PORT)).ownerships
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=owned.etag)
        await store.claim_ownership(WITH_PORT, [claim])
        update = CheckpointUpdate(
            partition_id="0", offset="2", sequence_number=8, replaces=None, writer="w"
        )
        await store.update_checkpoint(WITH_PORT, update)
        await store.announce_member(WITH_PORT, Member(owner_id="a", incarnation="1"))

    [logged] = [r.__dict__ for r in caplog.records if getattr(r, "event", "") == OTHER_SPELLING]
    assert owned.owner_id == "go"
    assert logged["blob"] == "localhost:5672/hub/$default/ownership/0"
    assert {blob.name for blob in azure.list_blobs()} - {logged["blob"]} == {
        f"localhost:5672/Hub/$Default/{record}"
        for record in ("ownership/0", "checkpoint/0", "member/a")
    }


async def test_the_namespace_option_sets_the_namespace_in_blob_names(
    azure, storage, container, caplog
):
    """With it, processors share one group with an SDK that leaves the port out."""
    put(azure, "localhost/hub/$default/ownership/0", ownerid="js")
    put(azure, "localhost/hub/$default/checkpoint/0", offset="1", sequencenumber="7")
    named = BlobCheckpointStore.from_connection_string(storage, container, namespace="LocalHost")
    async with named:
        [owned] = (await named.list_ownership(WITH_PORT)).ownerships
        [listed] = await named.list_checkpoints(WITH_PORT)
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=owned.etag)
        [won] = await named.claim_ownership(WITH_PORT, [claim])
        found = await named.read_checkpoint(WITH_PORT, "0")
        update = CheckpointUpdate(
            partition_id="0", offset="2", sequence_number=8, replaces=found, writer="w"
        )
        await named.update_checkpoint(WITH_PORT, update)
        await named.announce_member(WITH_PORT, Member(owner_id="a", incarnation="1"))
    folders = {blob.name.split("/")[0] for blob in azure.list_blobs()}

    assert (owned.owner_id, listed.sequence_number) == ("js", 7)
    assert won.outcome is WriteOutcome.WON
    assert folders == {"localhost"}
    assert [r for r in caplog.records if getattr(r, "event", "") == OTHER_SPELLING] == []


def test_a_namespace_with_a_slash_is_refused():
    """A slash would put the group into another folder."""
    with pytest.raises(ConfigurationError, match="without a slash"):
        BlobCheckpointStore("https://x.blob.core.windows.net", "any", "sas", namespace="a/b")
