"""``checkpoints import --from`` reads the blobs of each program, and what it refuses.

``golden`` has blobs of genuine clients (``write_golden.py``). The others here are made by the
formats alone, as their programs' sources write them.
"""

import pytest
from azure.storage.blob import BlobLeaseClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.blob._layout import record_of
from eventproc._command.foreign.names import (
    lease_by_number,
    lease_of_dapr,
    lease_of_functions,
    lease_of_host,
)
from eventproc.models import ConsumerGroup
from tests.integration.positions.blobs import (
    AS_GIVEN,
    LOWER,
    NAMESPACE,
    Blob,
    at,
    golden,
    put,
    stored,
)
from tests.integration.positions.conftest import HERE

PROGRAMS = ("python", "javascript", "java", "go")
GROUP = ConsumerGroup(fully_qualified_namespace=NAMESPACE, eventhub_name="Orders")
GO = {"partitionID": "1", "epoch": 1, "owner": "x", "state": "available", "token": "t"}
DOTNET = {"PartitionId": "0", "Owner": "x", "Token": "t", "Epoch": 386}
JAVA = {"partitionId": "0", "owner": "x", "token": "t", "epoch": 3}

SITUATIONS = {
    "azure-sdk, .NET": (
        "azure-sdk:C",
        [at(LOWER, "0", "4294970256", "1207", clientidentifier="x")],
        {"0": ("4294970256", 1207)},
    ),
    "azure-sdk, Go and Rust: names as they are given": (
        "azure-sdk:C",
        [at(AS_GIVEN, "3", "70", "7")],
        {"3": ("70", 7)},
    ),
    "azure-sdk, Java: other keys, too": (
        "azure-sdk:C",
        [Blob(f"{AS_GIVEN}/checkpoint/0", {"Offset": "70", "SequenceNumber": "7"})],
        {"0": ("70", 7)},
    ),
    "azure-sdk, geo-replicated: the offset is any text": (
        "azure-sdk:C",
        [at(LOWER, "0", "rs:1:0:42", "42")],
        {"0": ("rs:1:0:42", 42)},
    ),
    "azure-sdk, another group of the container": (
        "azure-sdk:C",
        [at(LOWER, "0", "70", "7"), at(f"{NAMESPACE}/orders/audit", "0", "90", "9")],
        {"0": ("70", 7)},
    ),
    "azure-sdk, a group with another name than ours": (
        "azure-sdk:C?group=Audit",
        [at(LOWER, "0", "70", "7"), at(f"{NAMESPACE}/orders/audit", "0", "90", "9")],
        {"0": ("90", 9)},
    ),
    "azure-sdk, a folder and a foreign blob": (
        "azure-sdk:C",
        [at(LOWER, "0", "70", "7"), Blob(f"{LOWER}/checkpoint", {"hdi_isfolder": "true"})],
        {"0": ("70", 7)},
    ),
    "functions, 5 and later": (
        "functions:C",
        [at(LOWER, "0", "70", "7"), Blob.lease(f"{LOWER}/0", **DOTNET, Offset="60")],
        {"0": ("70", 7)},
    ),
    "functions, 4 and before": (
        "functions:C",
        [
            Blob.lease(f"{NAMESPACE}/orders/$Default/0", **DOTNET, Offset="70", SequenceNumber=7),
            Blob.lease(f"{NAMESPACE}/orders/$Default/1", **DOTNET, Offset="", SequenceNumber=0),
        ],
        {"0": ("70", 7)},
    ),
    "functions, half moved: a checkpoint wins over a lease": (
        "functions:C",
        [
            at(LOWER, "0", "90", "9"),
            Blob.lease(f"{AS_GIVEN}/0", **DOTNET, Offset="70", SequenceNumber=7),
            Blob.lease(f"{AS_GIVEN}/1", **DOTNET, Offset="80", SequenceNumber=8),
        ],
        {"0": ("90", 9), "1": ("80", 8)},
    ),
    "functions, .NET 5.11 left a lease's position in place": (
        "functions:C",
        [
            at(LOWER, "0", "no offset", ""),
            Blob.lease(f"{AS_GIVEN}/0", **DOTNET, Offset="70", SequenceNumber=7),
        ],
        {"0": ("70", 7)},
    ),
    "event-processor-host, .NET": (
        "event-processor-host:C",
        [Blob.lease("$Default/0", **DOTNET, Offset="8591964920", SequenceNumber=960180)],
        {"0": ("8591964920", 960180)},
    ),
    "event-processor-host, Java and Logstash, with a prefix": (
        "event-processor-host:C?prefix=my-",
        [
            Blob.lease("my-$Default/0", **JAVA, offset="70", sequenceNumber=7),
            Blob.lease("$Default/0", **JAVA, offset="90", sequenceNumber=9),
        ],
        {"0": ("70", 7)},
    ),
    "event-processor-host, Python": (
        "event-processor-host:C",
        [
            Blob.lease(
                "0",
                partition_id="0",
                sequence_number=7,
                owner="x",
                token="t",
                epoch=3,
                event_processor_context=None,
                offset="70",
            )
        ],
        {"0": ("70", 7)},
    ),
    "event-processor-host, Go: before the first event is not event 0": (
        "event-processor-host:C",
        [
            Blob.lease("0", **GO, checkpoint={"offset": "70", "sequenceNumber": 7}),
            Blob.lease("1", **GO, checkpoint={"offset": "-1", "sequenceNumber": 0}),
        ],
        {"0": ("70", 7), "1": ("-1", -1)},
    ),
    "event-processor-host: a lease without a checkpoint is none": (
        "event-processor-host:C",
        [
            Blob.lease("$Default/0", **DOTNET, Offset="70", SequenceNumber=7),
            Blob.lease("$Default/1", **DOTNET, Offset=None, SequenceNumber=0),
            Blob.lease("$Default/2", **JAVA, sequenceNumber=0),
        ],
        {"0": ("70", 7)},
    ),
    "dapr": ("dapr:C", [at(AS_GIVEN, "0", "70", "7")], {"0": ("70", 7)}),
    "dapr, before Azure's new SDK for Go": (
        "dapr:C",
        [
            Blob.lease(
                "dapr-Orders-$Default-0", **GO, checkpoint={"offset": "70", "sequenceNumber": 7}
            )
        ],
        {"0": ("70", 7)},
    ),
    "filebeat, version 1": (
        "filebeat:C",
        [Blob.lease("0", **GO, checkpoint={"offset": "70", "sequenceNumber": 7})],
        {"0": ("70", 7)},
    ),
    "filebeat, moved to version 2": (
        "filebeat:C",
        [
            at(AS_GIVEN, "0", "90", "9"),
            at(AS_GIVEN, "1", "-1", "0"),
            Blob.lease("0", **GO, checkpoint={"offset": "70", "sequenceNumber": 7}),
        ],
        {"0": ("90", 9), "1": ("-1", -1)},
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_positions_of_each_layout_are_imported(tool, azure, situation):
    """What says that nothing was handled is left out, and never counts as event 0."""
    place, blobs, expected = SITUATIONS[situation]
    put(azure, *blobs)
    code, _, err = tool("import", "--from", place, "--yes")

    assert code == 0, err
    assert stored(tool) == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_records_of_a_genuine_client_are_imported(tool, azure, program):
    """Written by the SDK itself, against the emulator and Azurite; its partition 1 had no event."""
    put(azure, *golden(program, NAMESPACE))
    code, _, err = tool("import", "--from", "azure-sdk:C", "--yes")

    assert code == 0, err
    ((partition_id, (_, number)),) = stored(tool).items()
    assert (partition_id, number) == ("0", 4)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_the_records_of_a_genuine_client_are_those_of_the_group(
    azure, storage, container, program
):
    """Only Go's are as configured. The store finds them, and warns of no other spelling."""
    put(azure, *golden(program, NAMESPACE))
    store = BlobCheckpointStore.from_connection_string(
        storage, container, exact_names=program == "go"
    )
    async with store:
        owners = [one.owner_id for one in (await store.list_ownership(GROUP)).ownerships]
        [found] = await store.list_checkpoints(GROUP)

    assert owners == [None, None]
    assert (found.partition_id, found.sequence_number) == ("0", 4)


def test_of_two_spellings_the_one_written_last_is_taken(tool, azure):
    """Not the higher number: its group may have been moved back. Both blobs are named."""
    put(azure, at(AS_GIVEN, "0", "90", "9"))
    _wait_for_the_next_second(azure, AS_GIVEN)
    put(azure, at(LOWER, "0", "70", "7"))
    _, _, err = tool("import", "--from", "azure-sdk:C", "--yes")

    assert f"blob {LOWER}/checkpoint/0 was written last and is taken" in err
    assert f"blob {AS_GIVEN}/checkpoint/0 is not" in err
    assert stored(tool) == {"0": ("70", 7)}


def _wait_for_the_next_second(azure, folder):
    """Write a blob until its time is later than that of the folder's checkpoint."""
    first = azure.get_blob_client(f"{folder}/checkpoint/0").get_blob_properties().last_modified
    other = azure.get_blob_client("other")
    other.upload_blob(b"")
    while other.get_blob_properties().last_modified <= first:
        other.upload_blob(b"", overwrite=True)


def test_an_owner_that_renews_its_records_refuses_the_import(tool, azure):
    """The message says how to stop it; with --dry-run everything is shown all the same."""
    put(azure, at(LOWER, "0", "70", "7"), Blob(f"{LOWER}/ownership/0", {"ownerid": "app-1"}))
    shown = tool("import", "--from", "azure-sdk:C", "--dry-run")
    refused = tool("import", "--from", "azure-sdk:C", "--yes")
    before = stored(tool)
    put(azure, Blob(f"{LOWER}/ownership/0", {"ownerid": ""}))
    code, _, err = tool("import", "--from", "azure-sdk:C", "--yes")

    assert shown[0] == 0
    assert "without --dry-run this import is refused: its consumers run: app-1 owns" in shown[2]
    assert refused[:2] == (2, "")
    assert "app-1 owns partition 0" in refused[2]
    assert "stop its processes" in refused[2]
    assert before == {}
    assert (code, stored(tool)) == (0, {"0": ("70", 7)}), err


def test_a_group_that_both_use_has_nothing_to_import(tool, azure, container):
    """An SDK's processor that runs in our own container is a member of the group."""
    put(azure, at(LOWER, "0", "70", "7"), Blob(f"{LOWER}/ownership/0", {"ownerid": "app-1"}))
    here = ["--store", f"blob:{container}", *HERE[2:]]
    code, out, err = tool("import", "--from", "azure-sdk:C", "--yes", here=here)

    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "Nothing to change: every checkpoint is already in place."


def test_a_host_that_holds_its_lease_refuses_the_import(tool, azure):
    """Azure Storage says that a blob is leased, whatever its body says."""
    put(azure, Blob.lease("$Default/0", **DOTNET, Offset="70", SequenceNumber=7))
    lease = BlobLeaseClient(azure.get_blob_client("$Default/0"))
    lease.acquire(30)
    refused = tool("import", "--from", "event-processor-host:C", "--yes")
    lease.release()
    code, _, err = tool("import", "--from", "event-processor-host:C", "--yes")

    assert refused[0] == 2
    assert "a process holds the lease of blob $Default/0" in refused[2]
    assert (code, stored(tool)) == (0, {"0": ("70", 7)}), err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either a FILE that export wrote, or --from"),
        (["f.json", "--from", "functions:C"], "give either a FILE"),
        (["--from", "kinesis:C"], "where KIND is one of azure-sdk, functions"),
        (["--from", "functions"], "give KIND:PLACE"),
        (["--from", "functions:"], "needs a place after the colon"),
        (["--from", "functions:C?prefix=a"], "one of connection, namespace, eventhub, group"),
        (["--from", "functions:C?connection=OLD"], "environment variable 'OLD' is not set"),
        (["--from", "functions:C?connection=a;b"], "give the name of an environment variable"),
        (["--from", "functions:C"], "no position of this group was found there"),
        (["--from", "functions:no-such-container"], "check the name no-such-container"),
    ],
)
def test_a_place_that_has_nothing_is_refused_with_its_remedy(tool, arguments, message):
    """Nothing is written."""
    code, out, err = tool("import", *arguments, "--yes")

    assert (code, out) == (2, "")
    assert message in err
    assert stored(tool) == {}


def test_a_blob_whose_name_is_of_no_partition_is_left_out(tool, azure):
    """It is named, without what would move a terminal's cursor."""
    put(azure, at(LOWER, "0", "70", "7"), at(LOWER, " 1", "80", "8"))
    code, _, err = tool("import", "--from", "azure-sdk:C", "--yes")

    assert code == 0
    assert f"blob {LOWER}/checkpoint/ 1 is of no partition, and is left out" in err
    assert stored(tool) == {"0": ("70", 7)}


def test_a_position_without_its_number_needs_the_hub(tool, azure):
    """The message names the blob."""
    put(azure, Blob(f"{LOWER}/checkpoint/0", {"offset": "70"}))
    code, _, err = tool("import", "--from", "azure-sdk:C", "--yes")

    assert code == 2
    assert f"blob {LOWER}/checkpoint/0 has no sequence number, so the hub has to be asked" in err


def test_a_function_app_is_said_to_move_on_after_a_failure(tool, azure):
    """A position there means delivered, not handled."""
    put(azure, at(LOWER, "0", "70", "7"))

    assert (
        "whether the function succeeded or failed"
        in tool("import", "--from", "functions:C", "--dry-run")[2]
    )


values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    metadata=st.dictionaries(st.sampled_from(["offset", "sequencenumber", "other"]), values),
    body=st.binary(max_size=200),
    part=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=9),
)
def test_hostile_blobs_are_named_or_left_out(tool, azure, metadata, body, part):
    """Whatever they contain, a good position beside them is imported or the import says why not."""
    put(azure, at(LOWER, "0", "70", "7"))
    clean = {key: value.strip() for key, value in metadata.items()}
    azure.upload_blob(f"{LOWER}/checkpoint/1", body, metadata=clean, overwrite=True)
    azure.upload_blob(f"{LOWER}/1", body, overwrite=True)
    code, _, err = tool("import", "--from", "functions:C", "--dry-run", "--partition", "0")

    assert code == 0, err
    assert record_of(f"{LOWER}/checkpoint/{part}", GROUP) in {(LOWER, "checkpoint", part), None}


@given(st.text(max_size=60), st.text(max_size=5))
def test_any_name_of_a_blob_can_be_read(name, prefix):
    """A partition in it is a number, or a part without slashes."""
    numbers = [
        read(name, GROUP, prefix)
        for read in (lease_of_functions, lease_of_host, lease_by_number, lease_of_dapr)
    ]

    assert all(number is None or number.isdigit() for number in numbers)
    assert record_of(name, GROUP) is None or "/" not in (record_of(name, GROUP) or "")[2]
