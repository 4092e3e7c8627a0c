"""``eventproc`` on a Kafka broker: two processes, one of them killed, and an operator."""

import json
from textwrap import dedent

import pytest

from tests.integration.sources.kafka_topic import KafkaTopic

HANDLER = """
    from eventproc import PartitionHandler

    class Note(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                print(context.partition_id, event.sequence_number, flush=True)
"""
HERE = ["--eventhub", "shop", "--store", "sqlite:group.db"]
FAST = ["--interval", "300ms", "--expiration", "2s", "--checkpoint-events", "1"]


@pytest.fixture(name="topic")
def _topic(tmp_path, kafka):
    """Return a topic with ten events in each of three partitions, and write a handler."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    topic = KafkaTopic(kafka, "shop")
    for partition in range(3):
        topic.publish(partition, *[b"x"] * 10)
    return topic


def noted(process, until):
    """Read what a process handles until a condition holds for it."""
    found: list[tuple[str, int]] = []
    while not until(found):
        partition_id, number = process.stdout.readline().split()
        found.append((partition_id, int(number)))
    return found


def test_a_group_on_kafka_survives_a_kill_and_refuses_amqp_offsets(command, topic):
    """Two processes share the topic; when one is killed the other handles all new events."""
    env = {"EVENTPROC_CONNECTION_STRING": f"kafka://{topic.broker.bootstrap_servers}"}
    first = command.start("run", "shop:Note", *HERE, *FAST, "--owner-id", "one", **env)
    whole = {(str(p), n) for p in range(3) for n in range(10)}
    noted(first, lambda found: set(found) == whole)
    second = command.start("run", "shop:Note", *HERE, *FAST, "--owner-id", "two", **env)
    line = ""
    while "partition_claimed" not in line and "partition_started" not in line:
        line = second.stderr.readline()
    first.kill()
    for partition in range(3):
        topic.publish(partition, b"y")
    new = {(str(p), 10) for p in range(3)}
    after = noted(second, lambda found: new <= set(found))
    second.terminate()
    second.communicate(timeout=60)

    assert second.returncode == 0
    assert {number for _, number in after} <= {9, 10}  # With a checkpoint for each event.
    check_operator(command, env)


def check_operator(command, env):
    """Move a checkpoint by its number; check that an offset of AMQP is refused."""
    to = ("--partition", "1", "--to", "4", "--yes", "--format", "json")
    code, out, err = command.run("checkpoints", "reset", *HERE, *to, **env)
    (change,) = json.loads(out)["changes"]
    assert (code, err) == (0, "")
    assert (change["from_sequence_number"], change["to_offset"]) == (10, "kafka:3")

    at = ("--partition", "1", "--sequence-number", "3", "--offset", "4711", "--yes")
    code, _, err = command.run("checkpoints", "set", *HERE, *at, **env)
    assert code == 2
    assert "Kafka" in err
    assert "AMQP" in err
