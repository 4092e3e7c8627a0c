"""``eventproc scale`` in a process of its own, asked over real sockets."""

import asyncio
import json
import re
import signal
import urllib.error
import urllib.request

import grpc
import pytest
from azure.eventhub import EventData, EventHubProducerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from tests.integration.autoscaling.wire import (
    fields_of,
    get_metrics_request,
    scaled_object_ref,
    text,
)

SERVICE = "/externalscaler.ExternalScaler/"
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


def call(channel, name):
    """Return a call of the service that takes and returns bytes."""
    return channel.unary_unary(SERVICE + name)


def test_keda_gets_the_vote_by_the_published_field_numbers(command, env, publish):
    """All four calls, from zero processes to the first one that an event wakes.

    The target is how many processes a pod has, by the metadata of the object that asks.
    """
    process = command.start(*SCALE, *FAST, "--min", "0", "--grpc", "127.0.0.1:0", **env)
    port = port_of(process, "gRPC")
    first = json.loads(process.stdout.readline())

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stream = channel.unary_stream(SERVICE + "StreamIsActive")(scaled_object_ref(), timeout=30)
        asleep = next(stream)
        is_active = call(channel, "IsActive")(scaled_object_ref(), timeout=30)
        zero = call(channel, "GetMetrics")(get_metrics_request(), timeout=30)
        spec = call(channel, "GetMetricSpec")(scaled_object_ref(), timeout=30)
        workers = call(channel, "GetMetricSpec")(scaled_object_ref(processesPerPod="4"), timeout=30)
        with pytest.raises(grpc.RpcError) as refused:
            call(channel, "GetMetricSpec")(scaled_object_ref(processesPerPod="0"), timeout=30)
        publish()
        awake = next(stream)
        one = call(channel, "GetMetrics")(get_metrics_request(), timeout=30)
        stream.cancel()
    process.send_signal(signal.SIGTERM)

    assert first["replicas"] == 0
    assert (asleep, is_active, awake) == (b"", b"", b"\x08\x01")  # False is the default: no field.
    assert fields_of(spec).keys() == {1}
    assert fields_of(fields_of(spec)[1][0]) == {1: [b"eventproc-replicas"], 2: [1], 3: [1.0]}
    assert fields_of(fields_of(workers)[1][0]) == {1: [b"eventproc-replicas"], 2: [4], 3: [4.0]}
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "processesPerPod is '0'" in refused.value.details()
    assert fields_of(zero) == {1: [text(1, "eventproc-replicas")]}
    assert fields_of(fields_of(one)[1][0]) == {1: [b"eventproc-replicas"], 2: [1], 3: [1.0]}
    assert process.wait(20) == 0


def test_without_an_answer_so_far_there_is_no_vote(command, env, orders):
    """KEDA gets an error, and HTTP the status 503: neither may be taken for zero."""
    orders.stop()
    process = command.start(*SCALE, *FAST, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", **env)
    http, keda = port_of(process, "JSON"), port_of(process, "gRPC")

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{http}/", timeout=30)
    answer = json.loads(refused.value.read())
    with grpc.insecure_channel(f"127.0.0.1:{keda}") as channel:
        with pytest.raises(grpc.RpcError) as failed:
            call(channel, "GetMetrics")(get_metrics_request(), timeout=30)

    assert (refused.value.code, answer["replicas"]) == (503, None)
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


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
