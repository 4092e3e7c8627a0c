"""``import`` and ``set`` refuse what no store can keep, and an import over what is there."""

import asyncio
import io
import json

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command import main
from eventproc.models import ConsumerGroup, Member, MemberStatus

HERE = [
    "--store",
    "sqlite:group.db",
    "--namespace",
    "host",
    "--eventhub",
    "orders",
    "--without-hub",
]
HEAD = {
    "format": "eventproc-checkpoints",
    "version": 1,
    "namespace": "host",
    "eventhub": "orders",
    "consumer_group": "$Default",
    "exported_at": "2026-01-01T00:00:00Z",
}
RANGE = "between -1 and 9223372036854775807"


@pytest.fixture(name="tool")
def _tool(command):
    """Return a function that runs the verb in a folder of this test."""
    return lambda *arguments: command.run("checkpoints", *arguments, *HERE)


def write(path, *checkpoints, indent: int | None = 2):
    good = {"partition_id": "0", "offset": "4096", "sequence_number": 7}
    listed = [{**good, **changes} for changes in checkpoints]
    path.write_text(json.dumps({**HEAD, "checkpoints": listed}, indent=indent))


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ({"sequence_number": 10**30}, RANGE),
        ({"sequence_number": 2**63}, RANGE),
        ({"sequence_number": -2}, RANGE),
        ({"sequence_number": 1e300}, "got `float`"),
        ({"offset": "1\r\n2"}, "printable ASCII"),
        ({"offset": "\u00e9"}, "printable ASCII"),
        ({"offset": " 1"}, "without surrounding blanks"),
        ({"offset": "no offset"}, "give the event's offset"),
        ({"completed": [[9, 2**63]]}, "ends above 9223372036854775807"),
        ({"partition_id": "a/b"}, "without slashes"),
        ({"partition_id": "a\r\nb"}, "must be printable"),
    ],
)
def test_import_refuses_a_file_with_an_invalid_checkpoint(tool, tmp_path, invalid, message):
    """Nothing is imported; the message has the line of the checkpoint and what is expected
    there."""
    write(tmp_path / "f.json", {}, {"partition_id": "1", **invalid})
    code, out, err = tool("import", "f.json", "--yes")
    line = 1 + (tmp_path / "f.json").read_text().splitlines().index("    {", 10)

    assert (code, out) == (2, "")
    assert f"f.json, line {line}" in err
    assert message in err
    assert not (tmp_path / "group.db").exists()


def test_import_refuses_a_file_that_is_nested_too_deeply(tool, tmp_path):
    """The nesting is in a field that the format does not have."""
    text = json.dumps({**HEAD, "checkpoints": []})[:-1] + ', "more": ' + "[" * 40_000
    (tmp_path / "f.json").write_text(text)
    code, _, err = tool("import", "f.json", "--yes")

    assert code == 2
    assert "not what `export` writes" in err


def test_import_ignores_invalid_checkpoints_of_other_partitions(tool, tmp_path):
    """With ``--partition``, another partition's checkpoint without an offset is not an error."""
    write(tmp_path / "f.json", {}, {"partition_id": "1", "offset": None})
    refused = tool("import", "f.json", "--yes")
    code, out, _ = tool("import", "f.json", "--partition", "0", "--yes")

    assert refused[0] == 2
    assert "lacks offset" in refused[2]
    assert (code, out.splitlines()[-1]) == (0, "1 of 1 moved.")


def test_importing_the_same_file_again_changes_nothing(tool, tmp_path):
    """The output says so, and does not say that a state is stored."""
    write(tmp_path / "f.json", {"state": "c3RhdGU=", "state_sequence_number": 7})
    first = tool("import", "f.json", "--yes")[1]
    again = tool("import", "f.json", "--yes")[1]

    assert "stored (5 bytes)" in first
    assert first.splitlines()[-1] == "1 of 1 moved."
    assert "as it is" in again
    assert "stored" not in again
    assert again.splitlines()[-1] == "Nothing to change: every checkpoint is already in place."


def test_importing_an_equal_state_at_another_position_does_not_replace_it(tool, tmp_path):
    """The output says that the state stays as it is."""
    write(tmp_path / "f.json", {"state": "c3RhdGU=", "state_sequence_number": 7})
    tool("import", "f.json", "--yes")
    write(
        tmp_path / "f.json",
        {"sequence_number": 9, "state": "c3RhdGU=", "state_sequence_number": 9},
    )
    out = tool("import", "f.json", "--yes", "--overwrite")[1]

    assert "as it is (5 bytes)" in out
    assert out.splitlines()[-1] == "1 of 1 moved."


def test_import_over_another_checkpoint_needs_overwrite(tool, tmp_path):
    """Without it nothing is written, not even the partitions that have no checkpoint."""
    write(tmp_path / "f.json", {})
    tool("import", "f.json", "--yes")
    write(tmp_path / "f.json", {"sequence_number": 9}, {"partition_id": "1"})
    shown = tool("import", "f.json", "--dry-run")
    refused = tool("import", "f.json", "--yes")
    before = stored(tool)
    code, out, _ = tool("import", "f.json", "--yes", "--overwrite")

    assert shown[0] == 0
    assert "without --dry-run this import is refused: 1 of 2 partitions" in shown[2]
    assert refused[:2] == (2, "")
    assert "give --overwrite" in refused[2]
    assert before == {"0": 7}
    assert (code, stored(tool)) == (0, {"0": 9, "1": 7})
    assert "2 checkpoints, 1 new, 1 that replace another one, 0 in place already" in out


def test_an_import_that_ended_halfway_is_completed_by_a_repetition(tool, tmp_path):
    """What is in place already counts as that, and needs no ``--overwrite``."""
    write(tmp_path / "f.json", {}, {"partition_id": "1"}, {"partition_id": "2"})
    tool("import", "f.json", "--yes", "--partition", "1")
    code, out, _ = tool("import", "f.json", "--yes")

    assert code == 0
    assert "3 checkpoints, 2 new, 0 that replace another one, 1 in place already" in out
    assert out.splitlines()[-1] == "2 of 2 moved."
    assert stored(tool) == {"0": 7, "1": 7, "2": 7}


def test_import_into_a_running_group_needs_while_running(tool, tmp_path):
    """A member that owns nothing yet counts as running; its name is in the message."""
    asyncio.run(announce(tmp_path / "group.db", "worker-1"))
    write(tmp_path / "f.json", {})
    refused = tool("import", "f.json", "--yes")
    before = stored(tool)
    forced = tool("import", "f.json", "--yes", "--while-running")
    again = tool("import", "f.json", "--yes")

    assert refused[:2] == (2, "")
    assert "processors of the group run: worker-1." in refused[2]
    assert before == {}
    assert (forced[0], stored(tool)) == (0, {"0": 7})
    assert again[0] == 0, "nothing has to be written"


def test_import_keeps_a_checkpoint_that_is_created_while_it_asks(tool, tmp_path, monkeypatch):
    """Another operator writes between the table and the answer; the exit code is 1."""

    class Answer(io.StringIO):
        def readline(self, size=-1):
            at = ("--partition", "0", "--sequence-number", "50", "--offset", "9000")
            assert main(["checkpoints", "set", *at, "--yes", *HERE]) == 0
            return super().readline(size)

    write(tmp_path / "f.json", {})
    monkeypatch.setattr("sys.stdin", Answer("y\n"))
    code, out, err = tool("import", "f.json")

    assert code == 1
    assert out.splitlines()[-1] == "0 of 1 moved."
    assert "has a checkpoint now, at number 50" in err
    assert "give --overwrite to replace it" in err
    assert stored(tool) == {"0": 50}


async def announce(path, owner_id):
    """Write the member record of a processor."""
    group = ConsumerGroup(fully_qualified_namespace="host", eventhub_name="orders", name="$Default")
    member = Member(owner_id=owner_id, incarnation="i", status=MemberStatus.ACTIVE)
    async with SqliteCheckpointStore(path) as store:
        await store.announce_member(group, member)


def stored(tool):
    """Return the position of each partition."""
    listed = json.loads(tool("list", "--format", "json")[1])["checkpoints"]
    return {c["partition_id"]: c["sequence_number"] for c in listed}


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (["--sequence-number", str(10**30), "--offset", "5"], RANGE),
        (["--sequence-number", "9" * 5_000, "--offset", "5"], "integer"),
        (["--sequence-number", "5", "--offset", "5\r\n"], "printable ASCII"),
        (["--sequence-number", "5", "--offset", ""], "needs an offset"),
        (["--sequence-number", "5", "--offset", "5", "--partition", "a/b"], "without slashes"),
    ],
)
def test_set_refuses_an_invalid_checkpoint(tool, tmp_path, invalid, message):
    """``set`` checks its options before it opens a store; the message says what is allowed."""
    partition = [] if "--partition" in invalid else ["--partition", "0"]
    code, out, err = tool("set", *partition, *invalid, "--yes")

    assert (code, out) == (2, "")
    assert message in err
