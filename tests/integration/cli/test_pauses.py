"""``eventproc pause`` and ``eventproc resume``: what they print, and real processes that obey."""

import asyncio
import json
import queue
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from dataclasses import replace
from textwrap import dedent

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.models import ConsumerGroup, Member, OwnershipClaim

HERE = ["--eventhub", "orders", "--store", "sqlite:group.db"]
ALONE = [*HERE, "--namespace", "ns", "--without-hub"]
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="orders")


@pytest.fixture(name="tool")
def _tool(command, tmp_path):
    """Return a function that runs a verb on a group whose partition 3 was released."""

    async def record():
        async with SqliteCheckpointStore(tmp_path / "group.db") as store:
            claim = OwnershipClaim(partition_id="3", owner_id=None, expected_etag=None)
            await store.claim_ownership(GROUP, [claim])

    asyncio.run(record())
    return command.run


def test_a_pause_is_shown_with_its_reason_until_it_is_resumed(tool):
    """By the verbs, and by ``status`` in each of its formats."""
    code, out, err = tool("pause", *ALONE, "--partition", "3", "--reason", "INC-481 [db]")
    _, table, _ = tool("status", *ALONE)
    _, text, _ = tool("status", *ALONE, "--format", "json")
    _, csv, _ = tool("status", *ALONE, "--format", "csv")
    (row,) = json.loads(text)["partitions"]

    assert (code, err) == (0, "")
    assert "partition 3 is paused since 20" in out
    assert "UTC: INC-481 [db]" in out
    assert "UTC: INC-481 [db]" in table
    assert row["pause_reason"] == "INC-481 [db]"
    assert csv.endswith(f",{row['paused_since']},INC-481 [db]\n")

    code, out, _ = tool("resume", *ALONE, "--format", "json")
    _, text, _ = tool("status", *ALONE, "--format", "json")

    assert (code, json.loads(out)["paused"]["partitions"]) == (0, {})
    assert json.loads(text)["partitions"][0]["pause_reason"] is None
    out = tool("resume", *ALONE)[1]
    assert "None of it was paused" in out
    assert "Processors follow" not in out


def test_a_resume_says_what_was_paused_and_what_still_is(tool):
    """An operator who mistyped a partition sees it."""
    tool("pause", *ALONE, "--partition", "3", "--reason", "INC-480")
    _, text, _ = tool("resume", *ALONE, "--partition", "3")
    _, again, _ = tool("resume", *ALONE, "--partition", "3", "--format", "json")
    tool("pause", *ALONE, "--reason", "INC-481")
    _, whole, _ = tool("resume", *ALONE, "--format", "json")

    assert "Resumed: partition 3" in text
    assert "Processors follow at the next poll" in text
    assert json.loads(again)["resumed"] == {"version": 1, "group": None, "partitions": {}}
    assert json.loads(whole)["resumed"]["group"]["reason"] == "INC-481"
    assert json.loads(whole)["paused"]["group"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pause", "--reason", " "], "say in 1 to 500 why"),
        (["pause", "--reason", "x", "--partition", "9"], "--partition 9: there is no such"),
        (["resume", "--partition", "9"], "--partition 9: there is no such"),
    ],
)
def test_what_cannot_be_paused_is_refused_with_the_reason(tool, arguments, message):
    """Nothing is written."""
    verb, *options = arguments
    code, out, err = tool(verb, *ALONE, *options)

    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("verb", [("pause", "--reason", "x"), ("resume",)])
def test_a_group_of_resources_is_refused(tool, verb):
    """Resources are held and not received from: neither command has an option for such a group."""
    code, out, err = tool(*verb, "--store", "sqlite:group.db", "--resources", "keys")

    assert (code, out) == (2, "")
    assert "No such option: --resources" in err


@pytest.mark.parametrize("verb", [("pause", "--reason", "x"), ("resume",)])
def test_a_group_without_any_record_is_refused_as_mistyped(tool, verb):
    """The real group would go on; the message names the options that may be wrong."""
    code, out, err = tool(*verb, *ALONE, "--consumer-group", "typo")

    assert (code, out) == (2, "")
    assert "no process of consumer group 'typo' of event hub 'orders' at ns has ever run" in err
    assert "check --eventhub, --consumer-group, --namespace and --store" in err


def test_a_group_is_paused_before_its_first_process_starts_if_the_operator_says_so(tool):
    """From then on the store has a record of it."""
    new = [*ALONE, "--consumer-group", "billing"]
    code, out, err = tool("pause", *new, "--reason", "not yet", "--new-group")

    assert (code, err) == (0, "")
    assert "No processor of the group is running" in out
    assert "the whole group is paused since" in tool("pause", *new, "--reason", "longer")[1]
    assert "Nothing is paused." in tool("resume", *new)[1]


def test_a_pause_says_how_many_processors_follow_it(tool, tmp_path):
    """Those that are alive; as a number for programs."""
    member = Member(owner_id="a", incarnation="1")

    async def record():
        async with SqliteCheckpointStore(tmp_path / "group.db") as store:
            await store.announce_member(GROUP, member)

    asyncio.run(record())
    _, out, _ = tool("pause", *ALONE, "--reason", "x")
    _, text, _ = tool("pause", *ALONE, "--reason", "x", "--format", "json")

    assert "1 processor follows at the next poll" in out
    assert json.loads(text)["running_processors"] == 1


def test_a_processor_whose_leases_alone_are_fresh_follows_a_pause(tool, tmp_path):
    """It does not renew its member record as well."""

    async def record():
        async with SqliteCheckpointStore(tmp_path / "group.db") as store:
            await store.announce_member(GROUP, Member(owner_id="a", incarnation="1"))
            claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
            await store.claim_ownership(GROUP, [claim])

    asyncio.run(record())
    with closing(sqlite3.connect(tmp_path / "group.db")) as database, database:
        database.execute("UPDATE member SET last_modified_us = 0")

    assert "1 processor follows" in tool("pause", *ALONE, "--reason", "x")[1]


def test_a_group_of_which_only_a_member_is_known_is_paused(tool, tmp_path):
    """Its first process has started, and has claimed nothing yet."""
    group = replace(GROUP, name="billing")

    async def record():
        async with SqliteCheckpointStore(tmp_path / "group.db") as store:
            await store.announce_member(group, Member(owner_id="a", incarnation="1"))

    asyncio.run(record())

    assert tool("pause", *ALONE, "--consumer-group", "billing", "--reason", "x")[0] == 0


@pytest.mark.parametrize(
    ("mistyped", "message"),
    [
        (["--eventhub", "ordres"], "event hub 'ordres'"),
        (["--consumer-group", "typo"], "consumer group 'typo' of event hub 'orders'"),
    ],
)
def test_a_hub_or_consumer_group_that_does_not_exist_is_refused(tool, orders, mistyped, message):
    """Also for the whole group, and although --new-group accepts a group without records."""
    here = [*HERE, "--connection-string", orders.connection_string, *mistyped]
    for verb in (("pause", "--reason", "x", "--new-group"), ("resume",)):
        code, out, err = tool(*verb, *here)

        assert (code, out) == (2, "")
        assert message in err
        assert "cannot be read" in err


def test_one_partition_of_a_paused_group_is_not_resumed(tool):
    """The message says what to do."""
    tool("pause", *ALONE, "--reason", "move")
    code, _, err = tool("resume", *ALONE, "--partition", "3")

    assert code == 2
    assert "resume the whole group" in err


HANDLER = """
    from eventproc import PartitionHandler

    class Count(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                print(context.partition_id, event.sequence_number, flush=True)
"""
FAST = ["--interval", "1s", "--expiration", "6s", "--checkpoint-events", "1"]


class Processes:
    """Processes of one group, and the events that they print."""

    def __init__(self, command, env):
        self._command, self._env = command, env
        self._lines: queue.Queue[str] = queue.Queue()
        self.running: list[subprocess.Popen[str]] = []

    def start(self, owner_id):
        """Start a process."""
        process = self._command.start(
            "run", "shop:Count", *HERE, *FAST, "--owner-id", owner_id, **self._env
        )
        for stream, put in ((process.stdout, self._lines.put), (process.stderr, lambda _: None)):
            threading.Thread(target=lambda s=stream, p=put: [p(line) for line in s]).start()
        self.running.append(process)
        return process

    def next_events(self, count):
        """Return the next events, as texts of partition and number, sorted."""
        return sorted(self._lines.get(timeout=90).strip() for _ in range(count))

    def is_silent(self):
        """Whether nothing more was printed."""
        return self._lines.empty()

    def kill(self):
        """Kill all processes."""
        for process in self.running:
            process.kill()
            process.wait()
        self.running.clear()

    def status(self):
        """Return what ``status`` prints."""
        _, out, _ = self._command.run("status", *HERE, "--format", "json", **self._env)
        return json.loads(out)

    def wait_for(self, is_so):
        """Return when the partitions are so."""
        until_s = time.monotonic() + 90
        while not is_so(self.status()["partitions"]):
            assert time.monotonic() < until_s, self.status()


@pytest.mark.long
def test_a_pause_outlasts_a_kill_of_the_whole_group_and_a_rebalance(command, orders, tmp_path):
    """Nothing of the paused partitions is delivered, and all of it after the resume."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    env = {"EVENTPROC_CONNECTION_STRING": orders.connection_string}
    group = Processes(command, env)

    def publish():
        with EventHubProducerClient.from_connection_string(
            orders.connection_string_for("orders")
        ) as producer:
            for partition_id in "0123":
                producer.send_batch([EventData("x")], partition_id=partition_id)

    publish()
    group.start("a")
    assert group.next_events(4) == ["0 0", "1 0", "2 0", "3 0"]

    reason = ["--reason", "INC-481", "--expiration", "6s"]
    code, _, err = command.run(
        "pause", *HERE, *reason, "--partition", "1", "--partition", "2", **env
    )
    assert (code, err) == (0, "")
    group.running[0].terminate()
    group.running[0].wait()
    group.running.clear()
    group.start("b")
    publish()
    assert group.next_events(2) == ["0 1", "3 1"]

    # What is not checkpointed would be delivered again after a kill.
    group.wait_for(lambda rows: [row["lag"] for row in rows] == [0, 1, 1, 0])

    group.kill()
    group.start("c")
    group.start("d")
    group.wait_for(lambda rows: {row["owner_id"] for row in rows} == {"c", "d"})
    publish()
    assert group.next_events(2) == ["0 2", "3 2"]
    found = {p["partition_id"]: p["pause_reason"] for p in group.status()["partitions"]}
    assert found == {"0": None, "1": "INC-481", "2": "INC-481", "3": None}
    assert group.is_silent()

    command.run("resume", *HERE, **env)
    assert group.next_events(4) == ["1 1", "1 2", "2 1", "2 2"]
    assert group.is_silent()
    group.kill()
