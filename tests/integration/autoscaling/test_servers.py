"""``eventproc scale`` in a process of its own, asked over real sockets."""

import asyncio
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.errors import ConfigurationError

CLIENT = Path(__file__).parents[3] / ".tools/keda/client"
METRIC = {"metricName": "eventproc-replicas"}
SCALE = ("scale", "--eventhub", "orders", "--store", "sqlite:group.db")
FAST = ("--checkpoint-interval", "1s", "--every", "0.2s")


@pytest.fixture(name="env")
def _env(orders, tmp_path):
    async def create() -> None:
        async with SqliteCheckpointStore(tmp_path / "group.db"):
            pass

    asyncio.run(create())
    return {"EVENTPROC_CONNECTION_STRING": orders.connection_string}


@pytest.fixture(name="publish")
def _publish(orders):
    def publish():
        with EventHubProducerClient.from_connection_string(
            orders.connection_string_for("orders")
        ) as client:
            client.send_batch([EventData(b"order")], partition_id="0")

    return publish


def port_of(process, protocol):
    """Return the port that the command serves a protocol on, as it says."""
    line = process.stderr.readline()
    found = re.fullmatch(rf"eventproc: serving {protocol} on 127.0.0.1:(\d+)\n", line)
    assert found is not None, line
    return int(found[1])


class Keda:
    """KEDA's own client, in Go, asking for one scaled object."""

    def __init__(self, port):
        if not CLIENT.exists():
            raise ConfigurationError("KEDA's client is not built: `make clients`")
        self._process = subprocess.Popen(
            [CLIENT, f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._process as process:
            process.kill()

    def ask(self, call, **metadata):
        """Return the answer, or the code and the text of an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"call": call, "metadata": metadata}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["answer"] if "answer" in answer else (answer["code"], answer["error"])


def test_keda_gets_the_vote(command, env, publish):
    """All four calls, from zero processes to the first one that an event wakes.

    The target is how many processes a pod has, by the metadata of the object that asks.
    """
    process = command.start(*SCALE, *FAST, "--min", "0", "--grpc", "127.0.0.1:0", **env)
    port = port_of(process, "gRPC")
    first = json.loads(process.stdout.readline())

    with Keda(port) as keda:
        asleep, is_active = keda.ask("StreamIsActive"), keda.ask("IsActive")
        zero = keda.ask("GetMetrics")
        spec, workers = keda.ask("GetMetricSpec"), keda.ask("GetMetricSpec", processesPerPod="4")
        code, text = keda.ask("GetMetricSpec", processesPerPod="0")
        publish()
        awake = keda.ask("StreamIsActive")
        one = keda.ask("GetMetrics")
    process.send_signal(signal.SIGTERM)

    assert first["replicas"] == 0
    assert (asleep, is_active, awake) == ({}, {}, {"result": True})  # Go leaves false and 0 out.
    assert spec == {"metricSpecs": [METRIC | {"targetSize": 1, "targetSizeFloat": 1}]}
    assert workers == {"metricSpecs": [METRIC | {"targetSize": 4, "targetSizeFloat": 4}]}
    assert (code, "processesPerPod is '0'" in text) == ("InvalidArgument", True)
    assert zero == {"metricValues": [METRIC]}
    assert one == {"metricValues": [METRIC | {"metricValue": 1, "metricValueFloat": 1}]}
    assert process.wait(20) == 0


def test_without_an_answer_so_far_there_is_no_vote(command, env, orders):
    """KEDA gets an error, and HTTP the status 503: neither may be taken for zero."""
    orders.stop()
    process = command.start(*SCALE, *FAST, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", **env)
    http, port = port_of(process, "JSON"), port_of(process, "gRPC")

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{http}/", timeout=30)
    answer = json.loads(refused.value.read())
    with Keda(port) as client:
        code, _ = client.ask("GetMetrics")

    assert (refused.value.code, answer["replicas"]) == (503, None)
    assert code == "Unavailable"


def test_the_vote_is_served_as_json(command, env, publish):
    """As KEDA's metrics-api reads it: valueLocation is replicas."""
    publish()
    process = command.start(*SCALE, *FAST, "--http", "127.0.0.1:0", **env)
    port = port_of(process, "JSON")
    process.stdout.readline()

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
        served = json.loads(answer.read())

    assert (served["replicas"], served["backlog"]) == (1, 1)


def test_one_vote_is_printed_after_two_readings(command, env, publish):
    """With the rates between them."""
    publish()

    code, out, err = command.run(*SCALE, "--checkpoint-interval", "1s", **env)

    assert code == 0
    assert "no process of consumer group '$Default' of event hub 'orders'" in err
    assert json.loads(out) == {
        "replicas": 1,
        "reason": "behind, and processes that were asked for are not there yet",
        "backlog": 1,
        "arrival_per_s": 0.0,
        "drain_per_s": 0.0,
        "rate_of_one": None,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--min", "5", "--max", "2"), "--min is 5 and --max is 2: "),
        (("--drain-target", "20s"), "--start-time is 30 s and --drain-target is 20 s: "),
        (("--rate-of-one", "0"), "--rate-of-one is 0.0"),
        (("--http", "here"), "--http is 'here': give PORT for"),
        (("--grpc", "1.2.3.4:6000"), "--grpc 1.2.3.4:6000 cannot be listened on"),
        (("--http", "1.2.3.4:6000"), "--http 1.2.3.4:6000 cannot be listened on"),
    ],
)
def test_a_wrong_option_ends_the_command_at_once(command, env, options, message):
    """With the exit code 2 and a line that names the option."""
    code, out, err = command.run(*SCALE, *options, **env)

    assert (code, out) == (2, "")
    assert message in err
