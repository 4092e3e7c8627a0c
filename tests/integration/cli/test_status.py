"""``eventproc status --partition``: the partitions that are asked for, and no others."""

import asyncio
import json
from dataclasses import replace

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command import main
from eventproc._command.terminal.exits import BAD_INPUT
from eventproc.errors import StoreRejectedError
from eventproc.models import CheckpointUpdate, ConsumerGroup, OwnershipClaim

STORE = ["--store", "sqlite:group.db"]
HERE = ["--eventhub", "orders", *STORE, "--namespace", "ns", "--without-hub"]
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="orders")


@pytest.fixture(name="status")
def _status(tmp_path, monkeypatch, capsys):
    """Return a function that shows a group of four partitions, whose owner is ``host-1``."""
    monkeypatch.chdir(tmp_path)
    claims = [
        OwnershipClaim(partition_id=str(number), owner_id="host-1", expected_etag=None)
        for number in range(4)
    ]

    async def record():
        async with SqliteCheckpointStore(tmp_path / "group.db") as store:
            await store.claim_ownership(GROUP, claims)

    asyncio.run(record())

    def run(*arguments):
        code = main(["status", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), ["0", "1", "2", "3"]),
        (("--partition", "1"), ["1"]),
        (("--partition", "3", "--partition", "1"), ["1", "3"]),
        (("--partition", "1", "--filter", "unowned"), []),
    ],
)
def test_only_the_named_partitions_are_shown(status, given, expected):
    """The id of their owner plays no part, unlike with ``--filter 1``."""
    code, out, _ = status(*HERE, *given, "--format", "json")

    assert code == 0
    assert [row["partition_id"] for row in json.loads(out)["partitions"]] == expected


def test_a_partition_that_does_not_exist_is_refused(status):
    """Otherwise it would look as if nobody owned it."""
    code, out, err = status(*HERE, "--partition", "7")

    assert (code, out) == (BAD_INPUT, "")
    assert "--partition 7: there is no such partition; there are 0, 1, 2, 3" in err


def test_a_resource_is_no_partition(status):
    """The message names the option that selects one."""
    code, _, err = status("--resources", "keys", *STORE, "--partition", "key-1")

    assert code == BAD_INPUT
    assert "resources have names: give --filter NAME" in err


def test_the_other_groups_of_the_hub_are_named(status):
    """A process that is missing may have been started in one, whose name was mistyped."""
    written = CheckpointUpdate(
        partition_id="0", offset="400", sequence_number=9, replaces=None, writer="w"
    )
    mistyped, former = replace(GROUP, name="biling"), replace(GROUP, name="former")
    elsewhere = replace(GROUP, eventhub_name="returns")

    claim = OwnershipClaim(partition_id="0", owner_id="host-2", expected_etag=None)

    async def record():
        async with SqliteCheckpointStore("group.db") as store:
            await store.update_checkpoint(former, written)
            await store.update_checkpoint(elsewhere, written)
            await store.claim_ownership(mistyped, [claim])

    _, table_of_one, _ = status(*HERE)
    asyncio.run(record())
    _, table, _ = status(*HERE)
    _, text, _ = status(*HERE, "--format", "json")

    assert "Other groups" not in table_of_one
    assert (
        "Other groups of this hub in this store: biling (running) and former (no live member). If a"
        in " ".join(table.split())
    )
    assert [
        (group["consumer_group"], group["is_running"]) for group in json.loads(text)["other_groups"]
    ] == [("biling", True), ("former", False)]


def test_a_store_that_may_not_list_other_groups_is_shown_without_them(status, monkeypatch):
    """The credential may be for the group's own folder."""

    async def refused(_store, hub_of=None):
        raise StoreRejectedError(f"no right to list the groups beside {hub_of}")

    monkeypatch.setattr(SqliteCheckpointStore, "list_groups", refused)
    code, out, err = status(*HERE, "--format", "json")

    assert (code, err) == (0, "")
    assert (len(json.loads(out)["partitions"]), json.loads(out)["other_groups"]) == (4, [])
