"""``--roster``, in processes of their own."""

import json

import pytest

from tests.integration.cli.conftest import Command
from tests.integration.kubernetes.fake_cluster import NAMESPACE

MODULE = """
import asyncio
from datetime import timedelta
from eventproc import ResourceHandler
from eventproc.rosters.kubernetes import StatefulSetRoster

class Key(ResourceHandler):
    async def hold(self, held):
        print("using", held.name, flush=True)
        await asyncio.Event().wait()

def roster(number):
    return StatefulSetRoster(
        pod_name=f"consumer-{number}", namespace="%s", kubeconfig="kubeconfig",
        interval=timedelta(seconds=1), patience=timedelta(seconds=120),
    )

roster_0, roster_1 = roster(0), roster(1)
"""

KEYS = ("--resources", "a,b,c,d", "--group", "keys", "--store", "sqlite:group.db")


@pytest.fixture(name="command")
def _command(tmp_path):
    (tmp_path / "keys.py").write_text(MODULE % NAMESPACE, "utf-8")
    made = Command(tmp_path)
    yield made
    made.close()


def hold(command, roster, *more):
    """Start a process that holds keys."""
    rule = ("--placement", "Published:Ordinal")
    return command.start("hold", "keys:Key", *KEYS, "--roster", roster, *rule, *more)


@pytest.mark.long
def test_a_pod_takes_its_own_block_and_leaves_the_other_one(cluster, command):
    """Its owner id is the name of the pod; the leader asks once a second at most."""
    cluster.scale("consumer", 2)
    first = hold(command, "keys:roster_0")
    lines = [first.stdout.readline() for _ in range(2)]
    requests = len(cluster.requests)
    second = hold(command, "keys:roster_1")
    lines += [second.stdout.readline() for _ in range(2)]
    status = ("status", "--resources", "keys", "--store", "sqlite:group.db", "--format", "json")
    owners = {
        row["name"]: row["owner_id"] for row in json.loads(command.run(*status)[1])["resources"]
    }

    assert [line.split()[1] for line in lines] == ["a", "b", "c", "d"]
    assert owners == dict.fromkeys("ab", "consumer-0") | dict.fromkeys("cd", "consumer-1")
    assert requests >= 1


def test_a_missing_right_ends_the_command_with_2_and_the_role(cluster, command):
    """Nothing was written to the store."""
    cluster.answer_scale("consumer", 403)
    process = hold(command, "keys:roster_0")
    _, err = process.communicate(timeout=40)

    assert process.returncode == 2
    assert 'resources: ["statefulsets/scale"]' in err
    assert "Traceback" not in err
