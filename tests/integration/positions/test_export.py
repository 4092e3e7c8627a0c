"""``checkpoints export --to`` writes what an Azure SDK, or a program on one, goes on from."""

import asyncio
import json

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.models import ConsumerGroup, Member, MemberStatus
from tests.integration.positions.blobs import LOWER, NAMESPACE, Blob, at, blobs_in, put


@pytest.fixture(name="group")
def _group(tool):
    """Store positions of three partitions: of one nothing was handled."""
    for partition_id, offset, number in (("0", "70", 7), ("1", "-1", -1), ("2", "90", 9)):
        at_event = ("--partition", partition_id, "--offset", offset, "--sequence-number")
        assert tool("set", *at_event, str(number), "--yes")[0] == 0
    return ConsumerGroup(fully_qualified_namespace=NAMESPACE, eventhub_name="Orders")


POSITIONS = {
    "0": {"offset": "70", "sequencenumber": "7"},
    "2": {"offset": "90", "sequencenumber": "9"},
}


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("azure-sdk:C", LOWER),
        ("azure-sdk:C?names=exact", f"{NAMESPACE}/Orders/$Default"),
        ("azure-sdk:C?names=exact&namespace=Acme&group=Audit", "Acme/Orders/Audit"),
        ("functions:C", LOWER),
        ("dapr:C", f"{NAMESPACE}/Orders/$Default"),
        ("filebeat:C?group=$default&eventhub=orders", LOWER),
    ],
)
def test_positions_are_written_under_the_names_that_a_program_reads(
    tool, azure, group, place, folder
):
    """With offset and number, in lower-case keys; a partition without one gets no blob."""
    code, out, err = tool("export", "--to", place, "--yes")

    assert code == 0, err
    assert "2 of 2 written." in out
    assert "nothing of partition 1 was handled, so it gets no position there" in err
    assert {blob.name: blob.metadata for blob in blobs_in(azure)} == {
        f"{folder}/checkpoint/{p}": metadata for p, metadata in POSITIONS.items()
    }


def test_an_export_that_is_shown_writes_nothing(tool, azure, group):
    """The JSON has blob, position, and what is there now; repeating an export writes nothing."""
    put(azure, at(LOWER, "0", "60", "6"))
    shown = tool("export", "--to", "azure-sdk:C", "--dry-run", "--format", "json")
    before = blobs_in(azure)
    written = tool("export", "--to", "azure-sdk:C", "--yes", "--overwrite")
    again = tool("export", "--to", "azure-sdk:C", "--yes")

    assert json.loads(shown[1])["positions"][0] == {
        "partition_id": "0",
        "blob": f"{LOWER}/checkpoint/0",
        "sequence_number": 7,
        "offset": "70",
        "there_sequence_number": 6,
        "is_needed": True,
        "is_written": False,
        "error": None,
    }
    assert "without --dry-run this export is refused: 1 of 2 partitions" in shown[2]
    assert before == [at(LOWER, "0", "60", "6")]
    assert "2 of 2 written." in written[1]
    assert (again[0], again[1].splitlines()[-1]) == (
        0,
        "Nothing to write: every position is already in place.",
    )


def test_the_answer_no_writes_nothing(tool, azure, group):
    """The exit code is 1."""
    code, out, _ = tool("export", "--to", "azure-sdk:C", answer="n\n")

    assert code == 1
    assert "Write 2 positions?" in out
    assert blobs_in(azure) == []


@pytest.mark.parametrize(
    ("blobs", "message"),
    [
        ([at(LOWER, "0", "60", "6")], f"the first is {LOWER}/checkpoint/0): give --overwrite"),
        ([at(LOWER, "0", "60", "7")], f"the first is {LOWER}/checkpoint/0): give --overwrite"),
        ([Blob(f"{LOWER}/ownership/0", {"ownerid": "app"})], "app owns partition 0"),
        ([at(LOWER, "1", "60", "6")], f"and blob {LOWER}/checkpoint/1 has a position: delete it"),
    ],
)
def test_an_export_over_something_else_is_refused(tool, azure, group, blobs, message):
    """Another position, a consumer that runs, a position where we have none."""
    put(azure, *blobs)
    code, out, err = tool("export", "--to", "azure-sdk:C", "--yes")

    assert (code, out) == (2, "")
    assert message in err
    assert blobs_in(azure) == blobs


def test_an_export_from_a_running_group_is_refused(tool, azure, group):
    """Its positions would be old at once."""

    async def announce():
        member = Member(owner_id="worker-1", incarnation="i", status=MemberStatus.ACTIVE)
        async with SqliteCheckpointStore("group.db") as store:
            await store.announce_member(group, member)

    asyncio.run(announce())
    code, _, err = tool("export", "--to", "azure-sdk:C", "--yes")

    assert code == 2
    assert "processors of the group run: worker-1. Stop them first" in err
    assert blobs_in(azure) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either a FILE to write, or --to"),
        (["f.json", "--to", "functions:C"], "give either a FILE to write, or --to"),
        (["f.json", "--yes"], "are only for --to"),
        (["--to", "spark:folder"], "where KIND is one of azure-sdk, functions, dapr, filebeat"),
        (["--to", "azure-sdk:C?names=upper"], "give names=lower or names=exact"),
        (["--to", "azure-sdk:no-such-container", "--yes"], "check the name no-such-container"),
    ],
)
def test_an_export_to_nowhere_is_refused(tool, group, arguments, message):
    """The message says what is possible."""
    code, _, err = tool("export", *arguments)

    assert code == 2
    assert message in err


def test_positions_of_kafka_are_not_exported(tool, azure):
    """Consumers over AMQP do not understand them."""
    event = ("--partition", "0", "--sequence-number", "7", "--offset", "kafka:7")
    assert tool("set", *event, "--yes")[0] == 0
    code, _, err = tool("export", "--to", "azure-sdk:C", "--yes")

    assert code == 2
    assert "partition 0 is at kafka:7, which no consumer over AMQP understands" in err
