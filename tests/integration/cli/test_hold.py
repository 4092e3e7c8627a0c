"""``eventproc hold`` and ``eventproc status --resources``, each in a process of its own."""

import asyncio
import json
import signal

import pytest

from eventproc import PartitionHandler, ResourceHandler

HANDLER = """
import asyncio
from eventproc import ResourceHandler

class Key(ResourceHandler):
    async def hold(self, held):
        print("using", held.name, held.epoch, flush=True)
        await asyncio.Event().wait()

async def list_names():
    return ["b", "a/1"]

names = ["a"]
"""

GROUP = ("--group", "keys", "--store", "sqlite:group.db")
JSON = ("--format", "json")


class Idle(PartitionHandler):
    """Does nothing with events."""

    async def process_event(self, context, event):
        """Do nothing."""


class Held(ResourceHandler):
    """Does nothing with resources."""

    async def hold(self, held):
        """Wait for the cancellation."""
        await asyncio.Event().wait()


@pytest.fixture(name="module", autouse=True)
def _module(tmp_path):
    (tmp_path / "keys.py").write_text(HANDLER, "utf-8")


def test_names_are_held_shown_and_released(command):
    """With the names that the user gave; after SIGTERM nobody holds them."""
    holding = command.start("hold", "keys:Key", "--resources", "a/1, b", *GROUP)
    used = sorted(holding.stdout.readline().split()[1] for _ in range(2))
    code, out, _ = command.run(
        "status", "--resources", "keys", "--store", "sqlite:group.db", "--format", "json"
    )
    shown = json.loads(out)
    _, table, _ = command.run("status", "--resources", "keys", "--store", "sqlite:group.db")
    holding.send_signal(signal.SIGTERM)
    _, err = holding.communicate(timeout=40)
    events = {json.loads(line)["event"] for line in err.splitlines()}
    _, after, _ = command.run(
        "status", "--resources", "keys", "--store", "sqlite:group.db", "--format", "json"
    )

    assert (used, code, holding.returncode) == (["a/1", "b"], 0, 0)
    assert shown["group"] == "keys"
    assert [row["name"] for row in shown["resources"]] == ["a/1", "b"]
    assert len({row["owner_id"] for row in shown["resources"]}) == 1
    assert all(row["epoch"] > 0 for row in shown["resources"])
    assert "resources of group keys" in table
    assert "a/1" in table
    assert [row["owner_id"] for row in json.loads(after)["resources"]] == [None, None]
    assert {"signal_received", "resource_taken", "processor_stopped"} <= events


def test_the_table_of_an_unknown_group_says_that_it_has_no_records(command):
    """As for a consumer group."""
    holding = command.start("hold", "keys:Key", "--resources", "a", *GROUP)
    holding.stdout.readline()
    holding.kill()
    _, out, _ = command.run("status", "--resources", "others", "--store", "sqlite:group.db")

    assert "no resources and no members" in out


@pytest.mark.parametrize("verb", ["list", "export", "set"])
def test_checkpoints_of_a_group_of_resources_are_refused(command, tmp_path, verb):
    """It has none; nothing is opened."""
    group = ("--namespace", "eventproc", "--eventhub", "resources", "--consumer-group", "keys")
    given = {
        "list": (),
        "export": ("-",),
        "set": ("--partition", "0", "--sequence-number", "1", "--offset", "1", "--yes"),
    }[verb]
    code, _, errors = command.run("checkpoints", verb, *given, *group, "--store", "sqlite:group.db")

    assert code == 2
    assert not (tmp_path / "group.db").exists()
    assert "`eventproc status --resources keys` shows what it has" in errors


@pytest.mark.long
def test_workers_share_the_resources_of_their_host(command):
    """Each is a member under a name of its own, and a stop releases everything."""
    process = command.start(
        *("hold", "keys:Key", "--resources", "a,b", *GROUP, "--interval", "1s"),
        *("--expiration", "6s", "--owner-id", "host", "--workers", "2"),
    )
    used = {process.stdout.readline().split()[1] for _ in range(2)}
    lines: list[str] = []
    while sum("processor_started" in line for line in lines) < 2:
        lines.append(process.stderr.readline())
    process.send_signal(signal.SIGTERM)
    err = "".join(lines) + process.stderr.read()
    process.wait(timeout=60)
    events = [json.loads(line) for line in err.splitlines()]
    starts = [entry for entry in events if entry["event"] == "processor_started"]

    assert (process.returncode, used) == (0, {"a", "b"})
    assert {(entry["worker"], entry["owner_id"]) for entry in starts} == {
        (0, "host-0"),
        (1, "host-1"),
    }
