"""``eventproc`` on streams of RabbitMQ: two processes, one of them killed, and an operator."""

import asyncio
import json
from textwrap import dedent

import pytest

from tests.integration.cli.test_kafka import FAST, HANDLER, noted
from tests.integration.sources.rabbitmq_streams import SuperStream

HERE = ["--eventhub", "orders", "--store", "sqlite:group.db"]


@pytest.fixture(name="hub")
def _hub(tmp_path, rabbitmq):
    """Yield a super stream with ten events in each of three partitions, and write a handler."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    hub = SuperStream(rabbitmq, "orders")
    asyncio.run(hub.create())
    for partition in range(3):
        publish(hub, partition, *[b"x"] * 10)
    return hub


def publish(hub, partition, *bodies):
    asyncio.run(hub.publish(partition, bodies))


@pytest.mark.long
def test_a_group_on_streams_survives_a_kill_and_shows_its_lag(command, hub):
    """Two processes share the streams; when one is killed the other handles all new events."""
    env = {"EVENTPROC_CONNECTION_STRING": hub.broker.stream_url}
    first = command.start("run", "shop:Note", *HERE, *FAST, "--owner-id", "one", **env)
    whole = {(str(p), n) for p in range(3) for n in range(10)}
    noted(first, lambda found: set(found) == whole)
    second = command.start("run", "shop:Note", *HERE, *FAST, "--owner-id", "two", **env)
    line = ""
    while "partition_claimed" not in line and "partition_started" not in line:
        line = second.stderr.readline()
    first.kill()
    for partition in range(3):
        publish(hub, partition, b"y")
    new = {(str(p), 10) for p in range(3)}
    after = noted(second, lambda found: new <= set(found))
    second.terminate()
    second.communicate(timeout=60)

    assert second.returncode == 0
    assert {number for _, number in after} <= {9, 10}  # With a checkpoint for each event.
    publish(hub, 2, *[b"z"] * 5)
    check_operator(command, env)
    check_replay(command, env)
    check_copy(command, env)


def check_operator(command, env):
    """Ask for the lag and the status, and move a checkpoint by its number."""
    code, out, err = command.run("checkpoints", "lag", *HERE, "--format", "json", **env)
    assert (code, err) == (0, "")
    assert [row["lag"] for row in json.loads(out)["partitions"]] == [0, 0, 5]

    code, out, err = command.run("status", *HERE, "--format", "json", **env)
    assert (code, err) == (0, "")
    assert [row["lag"] for row in json.loads(out)["partitions"]] == [0, 0, 5]

    to = ("--partition", "1", "--to", "4", "--yes", "--format", "json")
    code, out, err = command.run("checkpoints", "reset", *HERE, *to, **env)
    (change,) = json.loads(out)["changes"]
    assert (code, err) == (0, "")
    assert (change["from_sequence_number"], change["to_offset"]) == (10, "stream:3")

    at = ("--partition", "1", "--sequence-number", "3", "--offset", "kafka:3", "--yes")
    code, _, err = command.run("checkpoints", "set", *HERE, *at, **env)
    assert code == 2
    assert "RabbitMQ's streams" in err
    assert "Kafka" in err


def check_replay(command, env):
    """After a reset to number 4, a processor delivers that event again, and all after it."""
    again = {("1", number) for number in range(4, 11)} | {("2", number) for number in range(11, 16)}
    third = command.start("run", "shop:Note", *HERE, *FAST, "--owner-id", "three", **env)
    found = noted(third, lambda found: again <= set(found))
    third.terminate()
    third.communicate(timeout=60)

    assert set(found) == again
    assert [number for partition, number in found if partition == "1"] == list(range(4, 11))


def check_copy(command, env):
    """List the checkpoints, and copy them to another group, which has the same lag then."""
    code, out, err = command.run("checkpoints", "list", *HERE, "--format", "json", **env)
    rows = {row["partition_id"]: row["offset"] for row in json.loads(out)["checkpoints"]}
    assert (code, err) == (0, "")
    assert rows == {"0": "stream:10", "1": "stream:10", "2": "stream:15"}

    other = ("--consumer-group", "other")
    assert command.run("checkpoints", "export", "copy.json", *HERE, **env)[0] == 0
    assert command.run("checkpoints", "import", "copy.json", *HERE, *other, "--yes", **env)[0] == 0
    at = ("--partition", "0", "--sequence-number", "7", "--offset", "stream:7", "--yes")
    assert command.run("checkpoints", "set", *HERE, *other, *at, **env)[0] == 0
    code, out, _ = command.run("checkpoints", "lag", *HERE, *other, "--format", "json", **env)
    assert [row["lag"] for row in json.loads(out)["partitions"]] == [3, 0, 0]
