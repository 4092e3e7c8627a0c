"""``eventproc emulator``: clients connect with what it prints."""

import json
import re
import signal
from urllib.request import urlopen

import pytest
import trustme
from azure.eventhub import EventData, EventHubProducerClient


def publish(connection_string, hub):
    """Publish one event with Azure's client; return the partition ids."""
    with EventHubProducerClient.from_connection_string(
        connection_string, eventhub_name=hub
    ) as producer:
        producer.send_event(EventData("hello"))
        return producer.get_partition_ids()


def test_the_emulator_prints_a_connection_string_that_works(command):
    """The text has it, and the command that exports it, on lines of their own, to be copied;
    SIGTERM ends the emulator with exit code 0."""
    emulator = command.start("emulator", "--hub", "orders:3", "--port", 0)
    output = ""
    for line in emulator.stdout:
        output += line
        if "Ctrl+C" in line:
            break
    (copied,) = re.findall(r"^  (Endpoint=\S+)$", output, re.MULTILINE)
    exported = re.findall(r"^  export EVENTPROC_CONNECTION_STRING='(.+)'$", output, re.MULTILINE)
    partition_ids = publish(copied, "orders")
    emulator.send_signal(signal.SIGTERM)
    emulator.communicate(timeout=60)

    assert partition_ids == ["0", "1", "2"]
    assert exported == [copied]
    assert "orders: 3 partitions" in output
    assert emulator.returncode == 0


def test_the_emulator_prints_one_line_of_json_for_programs(command, root_config):
    """The line has the hubs of Config.json and command line; ``--stop-at-eof`` ends the
    emulator."""
    emulator = command.start(
        *("emulator", "--config", root_config, "--hub", "more:2", "--port", 0),
        *("--health-port", 0, "--format", "json", "--stop-at-eof"),
    )
    ready = json.loads(emulator.stdout.readline())
    partition_ids = publish(ready["connection_string"], "more")
    emulator.communicate(timeout=60)

    assert partition_ids == ["0", "1"]
    assert len(ready["hubs"]) > 1
    assert ready["health_port"]
    assert emulator.returncode == 0


def test_a_port_in_use_is_an_error_that_names_the_remedy(command):
    """The message names the port and suggests port 0; the exit code is 2."""
    first = command.start("emulator", "--port", 0, "--format", "json")
    port = json.loads(first.stdout.readline())["port"]
    code, _, err = command.run("emulator", "--port", port)

    assert code == 2
    assert str(port) in err
    assert "Port 0 (`--port 0`) takes any free port" in err


@pytest.fixture
def _tls(tmp_path):
    """Write a certificate, its key and the CA's certificate into the test's folder."""
    ca = trustme.CA()
    server = ca.issue_cert("127.0.0.1")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    server.private_key_pem.write_to_path(tmp_path / "server.key")
    server.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")


@pytest.mark.long
@pytest.mark.usefixtures("_tls")
def test_with_tls_the_text_has_all_that_eventproc_needs(command, tmp_path):
    """The two variables that it prints, and the CA's certificate, reach the hub."""
    emulator = command.start(
        *("emulator", "--port", 0, "--websocket-port", 0),
        *("--certificate", "server.pem", "--key", "server.key"),
    )
    output = ""
    for line in emulator.stdout:
        output += line
        if "Ctrl+C" in line:
            break
    env = dict(re.findall(r"export (\w+)='(.+)'", output))
    (tmp_path / "x.db").touch()
    code, out, err = command.run(
        *("status", "--eventhub", "orders", "--store", "sqlite:x.db", "--format", "json"),
        *("--ca-bundle", "ca.pem"),
        **env,
    )

    assert set(env) == {"EVENTPROC_CONNECTION_STRING", "EVENTPROC_CUSTOM_ENDPOINT"}
    assert re.search(r"WebSockets: 127\.0\.0\.1:\d+, TLS", output)
    assert (code, json.loads(out or "{}").get("lag")) == (0, 0), err


def test_consumer_groups_of_hubs_in_a_file_are_refused(command, root_config):
    """The option is for the hubs of the command line; it would have no effect."""
    code, _, errors = command.run("emulator", "--config", root_config, "--consumer-group", "x")

    assert code == 2
    assert "name their groups in that file" in errors


def test_a_certificate_that_cannot_be_used_is_an_error_of_one_line(command):
    """The exit code says that a restart cannot help."""
    code, out, err = command.run("emulator", "--certificate", "no.pem", "--key", "no.key")

    assert (code, out) == (2, "")
    assert err == "eventproc: the certificate 'no.pem' cannot be read: No such file or directory\n"


def test_the_default_hub_is_that_of_the_help(command):
    """``eventproc --help`` starts the emulator without options, and reads ``orders``."""
    emulator = command.start("emulator", "--port", 0, "--format", "json")
    hubs = json.loads(emulator.stdout.readline())["hubs"]
    _, overview, _ = command.run("--help")

    assert [f"--eventhub {name}" in " ".join(overview.split()) for name in hubs] == [True]


def test_a_hub_is_compacted_on_request(command):
    """Also after a restart; the other hubs keep every event."""
    arguments = ("--hub", "latest:1", "--hub", "orders:1", "--compacted", "latest")
    hubs = {}
    for _ in range(2):
        emulator = command.start(
            *("emulator", "--port", 0, "--health-port", 0, "--data", "events", *arguments),
            *("--format", "json", "--stop-at-eof"),
        )
        ready = json.loads(emulator.stdout.readline())
        for hub in ("latest", "orders"):
            with EventHubProducerClient.from_connection_string(
                ready["connection_string"], eventhub_name=hub
            ) as producer:
                producer.send_batch([EventData("x")] * 3, partition_key="a")
        with urlopen(f"http://127.0.0.1:{ready['health_port']}/hubs") as answer:
            hubs = json.load(answer)["hubs"]
        emulator.communicate(timeout=60)
    code, _, errors = command.run("emulator", *arguments[:4], "--compacted", "other")

    firsts = {name: hubs[name]["partitions"]["0"]["first_sequence_number"] for name in hubs}
    assert firsts == {"latest": 5, "orders": 0}
    assert code == 2
    assert (
        "--compacted is 'other', but the hubs are latest, orders: add --hub other:PARTITIONS"
        in errors
    )
