"""The blob store writes the Azure SDKs' layout, and reads what any of them may have written."""

import json
from dataclasses import replace

import pytest
from azure.storage.blob import ContainerClient

from checkpointstores.blob import BlobCheckpointStore
from eventproc.errors import StoreCorruptError
from eventproc.models import (
    CheckpointUpdate,
    ConsumerGroup,
    Member,
    OwnershipClaim,
    WriteOutcome,
)

GROUP = ConsumerGroup(
    fully_qualified_namespace="Contoso.ServiceBus.windows.net", eventhub_name="Hub", name="$Default"
)
HOME = "contoso.servicebus.windows.net/hub/$default"
"""The three names in lower case, as most Azure SDKs write them."""

UNUSABLE = {
    "no-metadata": {},
    "other-keys": {"hello": "world"},
    "blank": {"offset": "", "sequencenumber": ""},
    "no-offset-and-nothing": {"offset": "no offset", "sequencenumber": ""},
    "words": {"offset": "", "sequencenumber": "seven"},
    "below-zero": {"offset": "", "sequencenumber": "-1"},
    "far-below-zero": {"offset": "", "sequencenumber": "-2"},
    "beyond-64-bits": {"offset": "", "sequencenumber": str(2**63)},
}
USABLE = {
    "classic": ({"offset": "4242", "sequencenumber": "42"}, ("4242", 42)),
    "net-5-11": ({"offset": "no offset", "sequencenumber": "42"}, (None, 42)),
    "net-5-12-number": ({"offset": "", "sequencenumber": "42"}, (None, 42)),
    "net-5-12-offset": ({"offset": "rs:1:0:42", "sequencenumber": ""}, ("rs:1:0:42", None)),
    "offset-only": ({"offset": "4242"}, ("4242", None)),
    "number-only": ({"sequencenumber": "42"}, (None, 42)),
    "net-identified": (
        {"offset": "1", "sequencenumber": "2", "clientidentifier": "x"},
        ("1", 2),
    ),
    "python-no-offset": ({"offset": "None", "sequencenumber": "42"}, (None, 42)),
    "filebeat-start": ({"offset": "-1", "sequencenumber": "0"}, ("-1", -1)),
    "ours-after-lost-events": ({"offset": "-1", "sequencenumber": "41"}, ("-1", 41)),
    "before-the-first": ({"offset": "-1", "sequencenumber": "-1"}, ("-1", -1)),
    "below-zero-elsewhere": ({"offset": "7", "sequencenumber": "-1"}, ("7", None)),
    "shouted": ({"Offset": "7", "SequenceNumber": "8"}, ("7", 8)),
}


@pytest.fixture
def azure(storage, container):
    """Yield the vendor's own client, to write and read as other programs do."""
    with ContainerClient.from_connection_string(storage, container) as client:
        yield client


@pytest.fixture
def store(storage, container):
    """Return an unopened store over the same container."""
    return BlobCheckpointStore.from_connection_string(storage, container)


def put(azure, name, metadata=None, body=b""):
    """Write a blob as some other program would."""
    azure.upload_blob(name, body, metadata=metadata, overwrite=True)


def an_update(sequence_number=7, replaces=None, **changes):
    """Return an update of partition 0."""
    values = {
        "partition_id": "0",
        "offset": str(sequence_number * 100),
        "sequence_number": sequence_number,
        "replaces": replaces,
        "writer": "pump-a",
    }
    return CheckpointUpdate(**(values | changes))


async def test_records_are_written_in_the_layout_of_the_azure_sdks(azure, store):
    """Names, metadata keys and empty bodies are those of the Azure SDKs."""
    async with store:
        claim = OwnershipClaim(partition_id="0", owner_id="me", expected_etag=None)
        await store.claim_ownership(GROUP, [claim])
        await store.update_checkpoint(GROUP, an_update())
        await store.announce_member(GROUP, Member(owner_id="me/too", incarnation="1"))
    blobs = {blob.name: blob for blob in azure.list_blobs(include=["metadata"])}

    assert set(blobs) == {
        f"{HOME}/ownership/0",
        f"{HOME}/checkpoint/0",
        f"{HOME}/member/me%2Ftoo",
    }
    assert blobs[f"{HOME}/ownership/0"].metadata == {"ownerid": "me"}
    assert blobs[f"{HOME}/checkpoint/0"].metadata == {
        "offset": "700",
        "sequencenumber": "7",
        "eventprocwriter": "pump-a",
    }
    assert {blob.size for blob in blobs.values()} == {0}


async def test_a_released_record_has_an_empty_ownerid(azure, store):
    """Processors of the Azure SDKs claim a partition whose ``ownerid`` is empty."""
    async with store:
        claim = OwnershipClaim(partition_id="0", owner_id="me", expected_etag=None)
        [won] = await store.claim_ownership(GROUP, [claim])
        await store.claim_ownership(
            GROUP, [replace(claim, owner_id=None, expected_etag=won.ownership.etag)]
        )
        snapshot = await store.list_ownership(GROUP)

    assert azure.get_blob_client(f"{HOME}/ownership/0").get_blob_properties().metadata == {
        "ownerid": ""
    }
    assert [record.owner_id for record in snapshot.ownerships] == [None]


@pytest.mark.parametrize("lists_raw", [True, False])
async def test_checkpoints_of_every_known_format_are_read(azure, store, lists_raw):
    """Both listing paths return each usable checkpoint, and skip malformed ones beside them."""
    for name, metadata in UNUSABLE.items():
        put(azure, f"{HOME}/checkpoint/{name}", metadata)
    for name, (metadata, _) in USABLE.items():
        put(azure, f"{HOME}/checkpoint/{name}", metadata)
    put(azure, f"{HOME}/checkpoint/deeper/0", {"offset": "1", "sequencenumber": "1"})
    put(azure, f"{HOME}/checkpoint", {"hdi_isfolder": "true"})
    put(azure, f"{HOME}/checkpoint/stub", {"hdi_isfolder": "true"})
    async with store:
        store._blobs.vendor._lists_raw = lists_raw
        listed = await store.list_checkpoints(GROUP)
        one_by_one = {
            name: await store.read_checkpoint(GROUP, name) for name in [*UNUSABLE, *USABLE]
        }

    assert {c.partition_id: (c.offset, c.sequence_number) for c in listed} == {
        name: position for name, (_, position) in USABLE.items()
    }
    assert {name: (c.offset, c.sequence_number) for name, c in one_by_one.items()} == {
        name: USABLE[name][1] if name in USABLE else (None, None) for name in one_by_one
    }


@pytest.mark.parametrize("lists_raw", [True, False])
async def test_ownership_records_of_every_known_format_are_read(azure, store, lists_raw):
    """A record without ``ownerid`` counts as released and can be claimed; folders are ignored."""
    put(azure, f"{HOME}/ownership/0", {"ownerid": "other"})
    put(azure, f"{HOME}/ownership/1", {"OwnerId": "shouted"})
    put(azure, f"{HOME}/ownership/2", {"ownerid": ""})
    put(azure, f"{HOME}/ownership/3", {})
    put(azure, f"{HOME}/ownership/not-a-partition", {"ownerid": "x", "more": "keys"})
    put(azure, f"{HOME}/ownership/4", {"hdi_isfolder": "true"})
    put(azure, f"{HOME}/ownership/5/deeper", {"ownerid": "x"})
    put(azure, f"{HOME}/ownership", {"hdi_isfolder": "true"})
    async with store:
        store._blobs.vendor._lists_raw = lists_raw
        snapshot = await store.list_ownership(GROUP)
        held = {record.partition_id: record for record in snapshot.ownerships}
        [taken] = await store.claim_ownership(
            GROUP,
            [OwnershipClaim(partition_id="3", owner_id="me", expected_etag=held["3"].etag)],
        )

    assert {key: record.owner_id for key, record in held.items()} == {
        "0": "other",
        "1": "shouted",
        "2": None,
        "3": None,
        "not-a-partition": "x",
    }
    assert taken.outcome is WriteOutcome.WON


async def test_both_listing_paths_return_the_same_records(azure, store):
    """The store's own parser returns what the vendor's listing returns, for any name, time
    included."""
    names = ["0", "überwachung-東京", "50%25 + #1?a=b&c", "quote'\"<&>"]
    for name in names:
        put(azure, f"{HOME}/ownership/{name}", {"ownerid": f"{len(name)}"})
    async with store:
        fast = await store.list_ownership(GROUP)
        store._blobs.vendor._lists_raw = False
        slow = await store.list_ownership(GROUP)

    assert set(fast.ownerships) == set(slow.ownerships)
    assert {record.partition_id for record in fast.ownerships} == set(names)
    assert abs((slow.as_of - fast.as_of).total_seconds()) <= 1


async def test_listing_falls_back_to_the_vendors_api_and_logs_it_once(azure, store, caplog):
    """Fast listing needs a private attribute of the vendor's client; without it listing still
    works."""
    put(azure, f"{HOME}/ownership/0", {"ownerid": "other"})
    async with store:
        del store._connection.client._pipeline
        listed = [await store.list_ownership(GROUP) for _ in range(2)]

    assert [snapshot.ownerships[0].owner_id for snapshot in listed] == ["other"] * 2
    assert [vars(record).get("event") for record in caplog.records] == ["listing_degraded"]


async def test_a_checkpoint_without_a_position_can_be_replaced(azure, store):
    """``read_checkpoint`` returns it, so that the first update can name its ETag."""
    put(azure, f"{HOME}/checkpoint/0", {"offset": "", "sequencenumber": ""})
    async with store:
        blank = await store.read_checkpoint(GROUP, "0")
        result = await store.update_checkpoint(GROUP, an_update(replaces=blank))

    assert result.outcome is WriteOutcome.WON


async def test_a_checkpoint_moved_by_an_azure_sdk_keeps_its_state_and_its_number(azure, store):
    """An Azure SDK replaces the metadata only: ``state_sequence_number`` shows that the state is
    older."""
    async with store:
        await store.update_checkpoint(GROUP, an_update(7, state=b"seven"))
        azure.get_blob_client(f"{HOME}/checkpoint/0").set_blob_metadata(
            {"offset": "900", "sequencenumber": "9"}
        )
        read = await store.read_checkpoint(GROUP, "0")

    assert (read.sequence_number, read.state, read.state_sequence_number) == (9, b"seven", 7)
    assert read.writer is None


async def test_a_damaged_state_is_an_error(azure, store):
    """A truncated body raises ``StoreCorruptError``; beginning without state would be silently
    wrong."""
    async with store:
        await store.update_checkpoint(GROUP, an_update(7, state=b"seven"))
        blob = azure.get_blob_client(f"{HOME}/checkpoint/0")
        body = blob.download_blob().readall()
        put(azure, f"{HOME}/checkpoint/0", {"offset": "1", "sequencenumber": "7"}, body[:-1])
        with pytest.raises(StoreCorruptError, match="is damaged"):
            await store.read_checkpoint(GROUP, "0")
        listed = await store.list_checkpoints(GROUP)

    assert [checkpoint.sequence_number for checkpoint in listed] == [7]


@pytest.mark.parametrize(
    ("prefix", "folder"),
    [
        ("", "$Default"),
        ("my-", "my-$Default"),
        ("Contoso.ServiceBus.windows.net/Hub/", "Contoso.ServiceBus.windows.net/Hub/$Default"),
    ],
)
async def test_legacy_leases_are_read_with_legacy_prefix(azure, storage, container, prefix, folder):
    """A group moves from EventProcessorHost or Functions and continues at the positions of its
    leases."""
    lease = {"PartitionId": "0", "Owner": "x", "Token": "t", "Epoch": 3}
    put(azure, f"{folder}/0", body=json.dumps(lease | {"Offset": "70", "SequenceNumber": 7}))
    put(azure, f"{folder}/1", body=json.dumps(lease | {"Offset": "", "SequenceNumber": 8}))
    put(azure, f"{folder}/2", body=json.dumps(lease | {"Offset": None, "SequenceNumber": 0}))
    put(azure, f"{folder}/3", body=b"\xff no json")
    put(azure, f"{HOME}/checkpoint/4", {"offset": "90", "sequencenumber": "9"})
    put(azure, f"{folder}/4", body=json.dumps(lease | {"Offset": "1", "SequenceNumber": 1}))
    put(azure, f"{HOME}/checkpoint/5", {"owner": "x"})
    put(azure, f"{folder}/5", body=json.dumps(lease | {"Offset": "1", "SequenceNumber": 1}))
    store = BlobCheckpointStore.from_connection_string(storage, container, legacy_prefix=prefix)
    async with store:
        listed = {c.partition_id: c for c in await store.list_checkpoints(GROUP)}
        read = await store.read_checkpoint(GROUP, "0")
        moved = await store.update_checkpoint(GROUP, an_update(8, replaces=read))
        again = await store.update_checkpoint(GROUP, an_update(8, replaces=read))

    assert {key: (c.offset, c.sequence_number) for key, c in listed.items()} == {
        "0": ("70", 7),
        "1": (None, 8),
        "4": ("90", 9),
    }
    assert read == listed["0"]
    assert (moved.outcome, again.outcome) == (WriteOutcome.WON, WriteOutcome.LOST)
    assert azure.get_blob_client(f"{HOME}/checkpoint/0").exists()


async def test_legacy_leases_are_ignored_without_legacy_prefix(azure, store):
    """Without the option, blobs elsewhere in the container are not read."""
    put(azure, "$Default/0", body=b'{"Offset": "70", "SequenceNumber": 7}')
    async with store:
        listed = await store.list_checkpoints(GROUP)
        read = await store.read_checkpoint(GROUP, "0")

    assert listed == []
    assert read is None
