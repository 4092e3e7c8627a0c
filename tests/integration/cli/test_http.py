"""``--http`` of ``eventproc run`` and ``eventproc hold``, asked over real HTTP."""

import json
import signal
import socket
import urllib.error
import urllib.request

import pytest
from azure.eventhub import EventData, EventHubProducerClient

HANDLERS = """
import asyncio
from eventproc import PartitionHandler, ResourceHandler

class OrderHandler(PartitionHandler):
    async def process_event(self, context, event):
        print("handling", flush=True)
        await asyncio.Event().wait()

class Key(ResourceHandler):
    async def hold(self, held):
        print("using", held.name, flush=True)
        await asyncio.Event().wait()
"""

STORE = ("--store", "sqlite:group.db")
RUN = ("run", "handlers:OrderHandler", "--eventhub", "orders", *STORE)
HOLD = ("hold", "handlers:Key", "--resources", "a/1", "--group", "keys", *STORE)
PATHS = ("/live", "/ready", "/partitions", "/status", "/metrics")


@pytest.fixture(name="module", autouse=True)
def _module(tmp_path):
    (tmp_path / "handlers.py").write_text(HANDLERS, "utf-8")


def address_of(process):
    """Return the address that the command serves on, as its log says."""
    for line in process.stderr:
        entry = json.loads(line)
        if entry["event"] == "http_server_started":
            return entry["address"]
    raise AssertionError("it served nothing")


def ask(address, path):
    """Return status and text of an answer."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def becomes(address, path, status):
    """Ask until the path has this status; the test's time limit ends it."""
    while True:
        code, text = ask(address, path)
        if code == status:
            return text


def test_a_call_that_hangs_is_red_among_the_partitions_and_the_process_is_live(command, orders):
    """While it drains it is not ready. No answer has the key of the hub."""
    process = command.start(
        *(*RUN, "--http", "0", "--stall-timeout", "1s", "--shutdown-timeout", "3s"),
        EVENTPROC_CONNECTION_STRING=orders.connection_string,
    )
    address = address_of(process)
    becomes(address, "/ready", 200)
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as client:
        client.send_batch([EventData(b"order")], partition_id="2")
    process.stdout.readline()
    red = json.loads(becomes(address, "/partitions", 503))["processors"][0]["partitions"]
    live = ask(address, "/live")[0]
    texts = [ask(address, path)[1] for path in PATHS]
    process.send_signal(signal.SIGTERM)
    stopping = json.loads(becomes(address, "/ready", 503))["processors"][0]["reasons"]
    live_while_stopping = ask(address, "/live")[0]

    assert address.startswith("127.0.0.1:")
    assert [each["name"] for each in red if not each["ok"]] == ["2"]
    assert (live, stopping, live_while_stopping) == (200, ["stopping"], 200)
    assert "eventproc_partitions_stalled" in texts[-1]
    assert "SAS_KEY_VALUE" in orders.connection_string
    assert not any("SAS_KEY_VALUE" in text for text in texts)
    assert process.wait(30) == 0


def test_a_resource_is_shown_by_its_name(command):
    """``eventproc hold`` has the same endpoints."""
    process = command.start(*HOLD, "--http", "localhost:0")
    address = address_of(process)
    process.stdout.readline()
    body = json.loads(becomes(address, "/partitions", 200))

    (entry,) = body["processors"]
    assert entry["resource_group"] == "keys"
    assert [each["name"] for each in entry["partitions"]] == ["a/1"]
    assert "eventproc_resources_held" in ask(address, "/metrics")[1]


@pytest.mark.parametrize("verb", [RUN, pytest.param(HOLD, marks=pytest.mark.long)])
def test_an_address_that_cannot_be_listened_on_ends_the_command_at_once(command, orders, verb):
    """With the exit code 2 and a line that names the option, and the cause."""
    env = {"EVENTPROC_CONNECTION_STRING": orders.connection_string}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        in_use = command.run(*verb, "--log-level", "error", "--http", port, **env)
    elsewhere = command.run(*verb, "--log-level", "error", "--http", "1.2.3.4:80", **env)
    malformed = command.run(*verb, "--http", "here", **env)

    assert [code for code, _, _ in (in_use, elsewhere, malformed)] == [2, 2, 2]
    assert in_use[2] == (
        f"eventproc: --http 127.0.0.1:{port} cannot be listened on: another process listens there "
        "already\n"
    )
    assert elsewhere[2] == (
        "eventproc: --http 1.2.3.4:80 cannot be listened on: the host is no address of this "
        "machine\n"
    )
    assert malformed[2].startswith("eventproc: --http is 'here': give PORT for this machine alone")
