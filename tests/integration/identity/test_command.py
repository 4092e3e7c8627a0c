"""The command with an identity instead of keys: over TLS, WebSockets and a proxy."""

import json
import signal
import time
from textwrap import dedent

import pytest
from azure.eventhub import EventData, EventHubProducerClient, TransportType

from eventproc._command.terminal.exits import BAD_INPUT, OK

from .conftest import NAMESPACE
from .connect_proxy import ConnectProxy

HANDLER = """
    from eventproc import PartitionHandler

    class Count(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                print(event.body.decode(), flush=True)

    class Fail(PartitionHandler):
        async def process_events(self, context, events):
            raise ValueError("no")
"""
FAST = ["--interval", "1s", "--expiration", "9s", "--checkpoint-events", "1"]


@pytest.fixture(autouse=True)
def _handlers(tmp_path):
    """Put the handlers into the folder of the test."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))


@pytest.fixture(name="store")
def _store(account, box):
    """Return the options that name the store, without a secret."""
    return ["--store", f"blob:{box}", "--storage-account", account.endpoint]


def hub_at(port):
    """Return the options that name the hub, without a secret."""
    return [
        *("--namespace", NAMESPACE, "--eventhub", "orders"),
        *("--custom-endpoint", f"sb://127.0.0.1:{port}"),
    ]


def publish(hub, tls, *bodies):
    """Publish events with a key."""
    with EventHubProducerClient.from_connection_string(
        hub.connection_string_for("orders"),
        custom_endpoint_address=f"sb://127.0.0.1:{hub.port}",
        transport_type=TransportType.Amqp,
        connection_verify=str(tls.ca),
    ) as producer:
        for body in bodies:
            producer.send_event(EventData(body), partition_id="0")


def read_until(process, count):
    """Return so many lines of what a process prints."""
    lines: list[str] = []
    while len(lines) < count:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        lines.append(line.strip())
    return lines


def test_run_and_status_need_no_secret(command, hub, store, tls, identity):
    """They use one identity for hub and storage."""
    here = [*hub_at(hub.port), *store]
    publish(hub, tls, "a", "b")
    process = command.start("run", "shop:Count", *here, *FAST)
    handled = read_until(process, 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    code, out, _ = command.run("status", *here, "--format", "json")

    assert (process.returncode, handled) == (OK, ["a", "b"]), err
    assert (code, json.loads(out)["lag"]) == (OK, 0)
    assert set(identity.asked) == {"https://storage.azure.com", "https://eventhubs.azure.net/"}


def test_the_other_verbs_need_no_secret_either(command, hub, store, tls):
    """Verbs that list, scale and verify."""
    here = [*hub_at(hub.port), *store]
    publish(hub, tls, "a")
    process = command.start("run", "shop:Count", *here, *FAST)
    read_until(process, 1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    listed, table, _ = command.run("checkpoints", "list", *here)
    lagged, _, _ = command.run("checkpoints", "lag", *here)
    scaled, vote, _ = command.run("scale", *here, "--checkpoint-interval", "1s")
    verified, _, refusal = command.run("verify", *here)

    assert (listed, lagged, scaled) == (OK, OK, OK)
    assert (verified, "give an empty one" in refusal) == (BAD_INPUT, True)
    assert NAMESPACE in table
    assert json.loads(vote)["replicas"] >= 1


def test_without_hub_only_the_store_is_asked(command, hub, store, identity):
    """The identity needs no right at the hub."""
    code, _, err = command.run("checkpoints", "list", *hub_at(hub.port), *store, "--without-hub")

    assert code == OK
    assert "The hub was not asked whether this consumer group exists" in err
    assert set(identity.asked) == {"https://storage.azure.com"}


def test_dead_letters_go_to_a_hub_and_to_a_container(command, hub, store, tls):
    """Both sinks use the identity, too."""
    publish(hub, tls, "bad")
    once = ["--attempts", "1", "--dead-letters"]
    box = store[1].removeprefix("blob:")
    for group, sink in (("one", "eventhub:dead"), ("two", f"blob:{box}")):
        process = command.start(
            *("run", "shop:Fail", *hub_at(hub.port), *store, *FAST, *once, sink),
            *("--consumer-group", group, "--log-format", "json"),
        )
        events = (json.loads(line)["event"] for line in process.stderr)

        assert "event_dead_lettered" in events
        process.kill()
    stored = [event for partition in "0" for event in hub.events("dead", partition)]

    assert [event.body for event in stored] == [b"bad"]


def test_a_proxy_with_a_user_carries_hub_and_storage(command, hub, store, account, tls):
    """The hub is then read over WebSockets, also where a custom endpoint is given."""
    publish(hub, tls, "a")
    with ConnectProxy(user="anna:p@ss") as proxy:
        process = command.start(
            *("run", "shop:Count", *hub_at(hub.websocket_port), *store, *FAST),
            EVENTPROC_PROXY=f"http://anna:p%40ss@127.0.0.1:{proxy.port}",
        )
        handled = read_until(process, 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        storage = account.endpoint.split("/")[2]

    assert (process.returncode, handled) == (OK, ["a"])
    assert set(proxy.targets) == {storage, f"127.0.0.1:{hub.websocket_port}"}


def test_websockets_need_no_proxy(command, hub, store, tls):
    """``--transport websocket`` is for networks that let only port 443 out."""
    publish(hub, tls, "a")
    process = command.start(
        *("run", "shop:Count", *hub_at(hub.websocket_port), *store, *FAST),
        *("--transport", "websocket"),
    )
    handled = read_until(process, 1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)

    assert (process.returncode, handled) == (OK, ["a"])


@pytest.mark.long
def test_tokens_are_presented_again_before_they_expire(command, hub, store, tls, identity):
    """The emulator ends links whose token expired, so none may be ended over several tokens."""
    identity.lifetime_s = 10.0
    process = command.start("run", "shop:Count", *hub_at(hub.port), *store, *FAST)
    publish(hub, tls, "a")
    first = read_until(process, 1)
    deadline = time.monotonic() + 90
    while identity.asked.count("https://eventhubs.azure.net/") < 5:
        assert time.monotonic() < deadline, identity.asked
        time.sleep(0.1)
    publish(hub, tls, "b")
    second = read_until(process, 1)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    events = {json.loads(line)["event"] for line in err.splitlines()}

    assert (process.returncode, first, second) == (OK, ["a"], ["b"])
    assert not {name for name in events if name.endswith(("_failed", "_refused", "_lost"))}, events


@pytest.fixture(name="emulator")
def _emulator(command, tls):
    """Return a function that starts ``eventproc emulator`` with TLS, and returns what it says."""

    def started(*more):
        process = command.start(
            *("emulator", "--port", 0, "--websocket-port", 0, "--format", "json"),
            *("--certificate", tls.certificate, "--key", tls.key, *more),
        )
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return json.loads(line)

    return started


@pytest.mark.long
@pytest.mark.parametrize("transport", ["amqp", "websocket"])
def test_the_emulators_command_serves_identities(command, emulator, identity, transport):
    """Over TLS; ``--rights`` says which identity may do what."""
    ready = emulator("--rights", f"{identity.identity}:Listen")
    port = ready["port"] if transport == "amqp" else ready["websocket_port"]
    (command.folder / "x.db").touch()
    ask = ("status", *hub_at(port), "--store", "sqlite:x.db", "--transport", transport)
    code, out, err = command.run(*ask, "--format", "json")
    identity.identity = "another"
    refused, _, reason = command.run(*ask)

    assert ready["hubs"] == {"orders": 4}
    assert (code, json.loads(out or "{}").get("lag")) == (OK, 0), err
    assert refused == BAD_INPUT
    assert "lacks the right Listen" in reason


@pytest.mark.long
def test_the_emulators_command_checks_tokens_of_any_identity(command, emulator, identity):
    """``--check-tokens`` refuses one for another service."""
    ready = emulator("--check-tokens")
    (command.folder / "x.db").touch()
    ask = ("status", *hub_at(ready["port"]), "--store", "sqlite:x.db")
    code, _, err = command.run(*ask)
    identity.audience = "https://elsewhere.example"
    refused, _, reason = command.run(*ask)

    assert code == OK, err
    assert refused == BAD_INPUT
    assert "InvalidAudience" in reason
