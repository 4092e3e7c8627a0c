"""The demo with RabbitMQ and few orders: none is lost, and no process is left."""

import json
import signal
from pathlib import Path

import pytest

from eventproc.cli.demo.rabbitmq.api_server import NAMESPACE, ApiServer
from eventproc.errors import EventProcError
from eventproc.rosters.kubernetes import StatefulSetRoster
from tests.integration.demo import demos
from tests.integration.demo.demos import processes_of, wait_for
from tests.servers.rabbitmq_broker import PROGRAM_VARIABLE


def start(*options, folder, **env):
    """Start a demo with few orders."""
    orders = ("--orders", "5000")
    return demos.start("demo-rabbitmq", *orders, *options, folder=folder, **env)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_pods_lose_no_order_and_overtake_none(has_rabbitmq, tmp_path):
    """Scaled, killed and frozen; standard output has the report alone."""
    demo = start("--format", "json", folder=tmp_path)
    out, err = demo.communicate()
    report = json.loads(out)
    zeros = ("lost", "out_of_order", "duplicates_unexplained", "overlaps_unexplained")
    steps = [step["what"].split()[-1] for step in report["steps"]]

    assert (demo.returncode, report["problems"]) == (0, [])
    assert (report["published"], report["handled"]) == (5000, 5000)
    assert {report[name] for name in zeros} == {0}
    assert steps == ["pods", "pods", "killed", "pods", "pods", "frozen", "continues", "pods"]
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_interrupted_demo_leaves_no_process_and_no_file(has_rabbitmq, tmp_path):
    """Neither pods nor the publisher nor the broker."""
    demo = start("--store", "sqlite", folder=tmp_path)
    wait_for(demo, "settled after")
    demo.send_signal(signal.SIGINT)
    _, err = demo.communicate(timeout=60)

    assert demo.returncode == 130
    assert err == "eventproc: interrupted; every process has ended\n"
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


def test_without_rabbitmq_the_demo_says_so_in_one_line(tmp_path):
    """With what to do; the exit code is that of a wrong option."""
    demo = start(folder=tmp_path, **{PROGRAM_VARIABLE: "/nowhere/rabbitmq"})
    _, err = demo.communicate(timeout=30)

    assert demo.returncode == 2
    assert len(err.splitlines()) == 1
    assert "/nowhere/rabbitmq" in err


async def test_the_api_server_answers_the_roster_of_a_pod(monkeypatch, tmp_path):
    """The real client reads the scale; other paths do not exist."""
    server, kubeconfig = ApiServer(), str(tmp_path / "kubeconfig")
    try:
        server.write_kubeconfig(Path(kubeconfig))
        server.replicas = 3
        monkeypatch.setenv("POD_NAME", "consumer-1")
        async with StatefulSetRoster(namespace=NAMESPACE, kubeconfig=kubeconfig) as roster:
            names = await roster.owner_ids()
        monkeypatch.setenv("POD_NAME", "other-1")
        async with StatefulSetRoster(namespace=NAMESPACE, kubeconfig=kubeconfig) as roster:
            with pytest.raises(EventProcError):
                await roster.owner_ids()
    finally:
        server.close()

    assert names == {"consumer-0", "consumer-1", "consumer-2"}
    assert server.request_count == 2
