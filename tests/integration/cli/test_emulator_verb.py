"""``eventproc emulator``: what it prints is what a genuine client connects with."""

import json
import re
import signal

from azure.eventhub import EventData, EventHubProducerClient


def publish(connection_string, hub):
    """Publish one event by the genuine client; return the partition ids."""
    with EventHubProducerClient.from_connection_string(
        connection_string, eventhub_name=hub
    ) as producer:
        producer.send_event(EventData("hello"))
        return producer.get_partition_ids()


def test_the_printed_connection_string_can_be_copied(command):
    """People get it in a text, on a line of its own; SIGTERM ends it with exit code 0."""
    emulator = command.start("emulator", "--hub", "orders:3", "--port", 0)
    said = ""
    for line in emulator.stdout:
        said += line
        if "Ctrl+C" in line:
            break
    (copied,) = re.findall(r"^  (Endpoint=\S+)$", said, re.MULTILINE)
    partition_ids = publish(copied, "orders")
    emulator.send_signal(signal.SIGTERM)
    emulator.communicate(timeout=20)

    assert partition_ids == ["0", "1", "2"]
    assert "orders: 3 partitions" in said
    assert emulator.returncode == 0


def test_a_program_gets_one_line_of_json(command, root_config):
    """With the hubs of a Config.json beside those of the command line."""
    emulator = command.start(
        *("emulator", "--config", root_config, "--hub", "more:2", "--port", 0),
        *("--health-port", 0, "--format", "json", "--stop-at-eof"),
    )
    ready = json.loads(emulator.stdout.readline())
    partition_ids = publish(ready["connection_string"], "more")
    emulator.communicate(timeout=20)

    assert partition_ids == ["0", "1"]
    assert len(ready["hubs"]) > 1
    assert ready["health_port"]
    assert emulator.returncode == 0


def test_a_port_that_is_taken_is_said(command):
    """With the remedy."""
    first = command.start("emulator", "--port", 0, "--format", "json")
    port = json.loads(first.stdout.readline())["port"]
    code, _, err = command.run("emulator", "--port", port)

    assert code == 2
    assert str(port) in err
    assert "port 0 takes any free port" in err
