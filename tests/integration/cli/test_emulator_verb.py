"""``eventproc emulator``: clients connect with what it prints."""

import json
import re
import signal

from azure.eventhub import EventData, EventHubProducerClient


def publish(connection_string, hub):
    """Publish one event with Azure's client; return the partition ids."""
    with EventHubProducerClient.from_connection_string(
        connection_string, eventhub_name=hub
    ) as producer:
        producer.send_event(EventData("hello"))
        return producer.get_partition_ids()


def test_the_emulator_prints_a_connection_string_that_works(command):
    """The text has it on a line of its own; SIGTERM ends the emulator with exit code 0."""
    emulator = command.start("emulator", "--hub", "orders:3", "--port", 0)
    output = ""
    for line in emulator.stdout:
        output += line
        if "Ctrl+C" in line:
            break
    (copied,) = re.findall(r"^  (Endpoint=\S+)$", output, re.MULTILINE)
    partition_ids = publish(copied, "orders")
    emulator.send_signal(signal.SIGTERM)
    emulator.communicate(timeout=20)

    assert partition_ids == ["0", "1", "2"]
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
    emulator.communicate(timeout=20)

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
    assert "port 0 takes any free port" in err
