"""KEDA's external scaler: the metadata of a trigger, and clients that say nothing."""

import asyncio

import grpc
import pytest

from eventproc import ConfigurationError
from eventproc._base.http.address import ListenAddress
from eventproc._command import keda
from eventproc._command.keda import COUNT_MAX, processes_per_pod, serve_keda
from eventproc._core.scaling.decision import ScalingRules
from eventproc._group.autoscaler import Autoscaler


@pytest.mark.parametrize(
    ("metadata", "count"),
    [
        ({}, 1),
        ({"scalerAddress": "scale:6000"}, 1),
        ({"processesPerPod": "1"}, 1),
        ({"processesPerPod": "4"}, 4),
        ({"processesPerPod": str(COUNT_MAX)}, COUNT_MAX),
    ],
)
def test_a_pod_has_as_many_processes_as_its_trigger_says(metadata, count):
    """Without the setting, one."""
    assert processes_per_pod(metadata) == count


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "four", " 2", "²", str(COUNT_MAX + 1)])
def test_another_value_is_refused(text):
    """A target of 0 would ask for endless pods; the message names the setting and its value."""
    with pytest.raises(ConfigurationError, match=r"processesPerPod is .* --workers N"):
        processes_per_pod({"processesPerPod": text})


async def test_connections_that_say_nothing_are_closed_and_limited(monkeypatch):
    """Afterwards KEDA is answered again."""
    limits = {**dict(keda._LIMITS), "grpc.server_handshake_timeout_ms": 300}
    monkeypatch.setattr(keda, "_LIMITS", tuple(limits.items()))
    count = limits["grpc.max_allowed_incoming_connections"] + 20

    async def read():
        raise AssertionError("not read")

    async with serve_keda(ListenAddress(), Autoscaler(read, ScalingRules())) as bound:
        clients = [await asyncio.open_connection("127.0.0.1", bound.port) for _ in range(count)]
        ends = (reader.read() for reader, _ in clients)
        await asyncio.wait_for(asyncio.gather(*ends, return_exceptions=True), 30)
        for _, writer in clients:
            writer.close()
        async with grpc.aio.insecure_channel(str(bound)) as channel:
            asked = channel.unary_unary("/externalscaler.ExternalScaler/IsActive")
            with pytest.raises(grpc.aio.AioRpcError) as answer:
                await asked(b"", timeout=30, wait_for_ready=True)

    assert answer.value.details() == "the group was not read yet"
