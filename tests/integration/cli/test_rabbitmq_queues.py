"""``eventproc`` on partition queues: two processes, one of them killed, and an operator."""

import asyncio
import json
from textwrap import dedent

import pytest

from tests.integration.sources.rabbitmq_queues import Queues

pytestmark = pytest.mark.long

HANDLER = """
    from eventproc import PartitionHandler

    class Note(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                print(context.partition_id, event.body.decode(), flush=True)
"""
FAST = ["--interval", "300ms", "--expiration", "3s", "--checkpoint-events", "1"]


def noted(process, until):
    """Read what a process handles until a condition holds for it."""
    found: list[tuple[str, str]] = []
    while not until(found):
        partition_id, body = process.stdout.readline().split()
        found.append((partition_id, body))
    return found


def test_a_group_on_queues_survives_a_kill_and_refuses_to_move(command, rabbitmq, tmp_path):
    """Two processes share the queues; when one is killed the other handles all new messages."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    queues = Queues(rabbitmq)
    here = ["--eventhub", queues.prefix, "--store", "sqlite:group.db"]
    env = {"EVENTPROC_CONNECTION_STRING": f"{rabbitmq.url}?queues=3"}
    for partition in "012":
        asyncio.run(queues.publish(partition, *(b"%d" % number for number in range(10))))

    first = command.start("run", "shop:Note", *here, *FAST, "--owner-id", "one", **env)
    whole = {(p, str(n)) for p in "012" for n in range(10)}
    noted(first, lambda found: set(found) == whole)
    second = command.start("run", "shop:Note", *here, *FAST, "--owner-id", "two", **env)
    line = ""
    while "partition_started" not in line:
        line = second.stderr.readline()
    first.kill()
    for partition in "012":
        asyncio.run(queues.publish(partition, b"new"))
    new = {(p, "new") for p in "012"}
    after = noted(second, lambda found: new <= set(found))
    second.terminate()
    second.communicate(timeout=60)

    assert second.returncode == 0
    assert {body for _, body in after} <= {"9", "new"}  # With a checkpoint for each message.

    asyncio.run(queues.publish("2", b"waits", b"waits"))
    code, out, err = command.run("status", *here, "--format", "json", **env)
    assert (code, err) == (0, "")
    assert [row["lag"] for row in json.loads(out)["partitions"]] == [0, 0, 2]
    at = ["--partition", "1", "--sequence-number", "3", "--offset", "4711", "--yes"]
    for verb in (["reset", "--to", "earliest", "--yes"], ["lag"], ["set", *at]):
        code, _, err = command.run("checkpoints", *verb, *here, **env)
        assert code == 2
        assert "no positions to move" in err
        assert "purge_queue" in err
