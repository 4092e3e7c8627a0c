"""Azure's clients for Java and Go, two more implementations of the protocol."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from eventproc.emulator import EventHubsEmulator
from tests.servers.certificates import certificates_in

from .foreign_clients import SDKS, ForeignClient, ForeignError

STOLEN = {"java": "amqp:link:stolen", "go": "ownershiplost"}
TIMEOUT_S = 20


@pytest.fixture(scope="module", params=SDKS)
def program(request):
    """Yield a running client, which is connected to nothing."""
    with ForeignClient(request.param) as client:
        yield client


@pytest.fixture
def client(program, shared_emulator, hub):
    """Return the client, connected to a hub of four partitions."""
    program.connect(shared_emulator.connection_string, hub)
    return program


def events(count, **values):
    return [{"body": f"event {index}", **values} for index in range(count)]


def receive(client, receiver, partition_id="2", count=1, **options):
    return client.ask(
        "receive",
        receiver=receiver,
        partition_id=partition_id,
        count=count,
        timeout_s=TIMEOUT_S,
        **options,
    )


def numbers(received):
    return [event["sequence_number"] for event in received]


def test_the_client_works_with_the_emulator(client, shared_emulator, hub):
    """Batches, keys, properties, a receiver from the beginning, and management requests."""
    told = {"text": "naïve", "flag": True, "ratio": 1.5}
    sent = {
        "properties": told,
        "message_id": "m",
        "correlation_id": "c",
        "content_type": "text/plain",
    }

    client.ask("send", partition_key="key", events=events(10, **sent))
    [where] = [p for p in shared_emulator.partition_ids(hub) if shared_emulator.events(hub, p)]
    received = receive(client, "all", where, 10)
    described = client.ask("hub")
    partition = client.ask("partition", partition_id=where)

    assert [event["body"] for event in received] == [f"event {index}" for index in range(10)]
    assert numbers(received) == list(range(10))
    for event in received:
        assert event["partition_key"] == "key"
        assert {name: event[name] for name in sent} == sent
    assert (described["name"], described["partition_ids"]) == (hub, ["0", "1", "2", "3"])
    assert partition == {
        "partition_id": where,
        "is_empty": False,
        "beginning_sequence_number": 0,
        "last_sequence_number": 9,
        "last_offset": received[-1]["offset"],
    }


@pytest.mark.long
def test_a_key_leads_every_client_to_the_same_partition(client, shared_emulator, hub):
    """The service chooses; the emulator does so as the producers that buffer."""
    for index in range(20):
        client.ask("send", partition_key=f"key {index}", events=events(1))
        if client.sdk == "java":
            sent = client.ask("send_buffered", partition_key=f"key {index}", events=events(1))
            assert sent == {"sent": 1, "failures": []}

    count = 2 if client.sdk == "java" else 1
    keys = [
        [event.partition_key for event in shared_emulator.events(hub, partition_id)]
        for partition_id in shared_emulator.partition_ids(hub)
    ]
    assert sum(map(len, keys)) == 20 * count
    assert sum(len(set(found)) for found in keys) == 20


@pytest.mark.long
def test_events_without_a_partition_are_spread(client, shared_emulator, hub):
    """Nine batches, one after another; Java's buffering producer spreads by itself."""
    for _ in range(9):
        client.ask("send", events=events(1))
    if client.sdk == "java":
        client.ask("send_buffered", events=events(40))

    counts = [len(shared_emulator.events(hub, p)) for p in shared_emulator.partition_ids(hub)]
    assert sum(counts) == (49 if client.sdk == "java" else 9)
    assert min(counts) >= 2


@pytest.mark.long
def test_every_start_position_is_understood(client, shared_emulator, hub):
    """Offset, sequence number (inclusive or not), enqueued time, and the end."""
    client.ask("send", partition_id="2", events=events(10))
    fourth = shared_emulator.events(hub, "2")[4]

    at = receive(client, "at", count=2, sequence_number=4, is_inclusive=True)
    after = receive(client, "after", count=2, sequence_number=4)
    by_offset = receive(client, "offset", count=2, offset=str(fourth.offset))
    by_time = receive(client, "time", count=10, enqueued_ms=fourth.enqueued_ms - 60_000)
    at_end = client.ask(
        "receive", receiver="end", partition_id="2", is_latest=True, count=1, timeout_s=1
    )
    client.ask("close", receiver="at")
    client.ask("send", partition_id="2", events=events(1))

    assert (numbers(at), numbers(after), numbers(by_offset)) == ([4, 5], [5, 6], [5, 6])
    assert numbers(by_time) == list(range(10))
    assert at_end == []
    assert numbers(receive(client, "end")) == [10]


@pytest.mark.long
def test_an_epoch_displaces_lower_ones(client):
    """A receiver with a lower epoch, or without one, is refused and then displaced."""
    client.ask("send", partition_id="2", events=events(10))
    plain = receive(client, "plain")
    first = receive(client, "first", owner_level=1)
    with pytest.raises(ForeignError, match="non-epoch receiver is not allowed"):
        receive(client, "other plain")
    with pytest.raises(ForeignError, match="with a higher epoch '1' already exists"):
        receive(client, "lower", owner_level=0)
    second = receive(client, "second", owner_level=2)
    with pytest.raises(ForeignError, match="higher epoch of '2' is created") as displaced:
        receive(client, "first", count=1000)

    assert numbers(plain) == numbers(first) == numbers(second) == [0]
    assert displaced.value.code == STOLEN[client.sdk]


@pytest.mark.long
def test_large_events_arrive_and_larger_ones_are_refused(client):
    """The link says how large a message may be."""
    client.ask("send", partition_id="1", events=[{"body": "x" * 900_000}])
    with pytest.raises(ForeignError, match=r"large|exceeded"):
        client.ask("send", partition_id="1", events=[{"body": "x" * 1_100_000}])

    [received] = receive(client, "large", "1")
    assert len(received["body"]) == 900_000


@pytest.mark.long
def test_what_does_not_exist_is_refused_as_in_the_service(client, shared_emulator, hub):
    """Each client makes an error of its own of it."""
    with pytest.raises(ForeignError, match="should be between 0 and 3"):
        client.ask("partition", partition_id="9")
    with pytest.raises(ForeignError, match="should be between 0 and 3"):
        client.ask("send", partition_id="9", events=events(1))
    client.connect(shared_emulator.connection_string, hub, "no-such-group")
    with pytest.raises(ForeignError, match=r"ConsumerGroups/no-such-group.*could not be found"):
        receive(client, "group")
    client.connect(shared_emulator.connection_string, "no-such-hub")
    with pytest.raises(ForeignError, match=r"no-such-hub.*could not be found"):
        client.ask("hub")


@pytest.mark.long
def test_the_client_goes_on_after_faults(program):
    """Connections that are cut, and a restart. Java's receiver ends with its connection, and the
    program has to open another, as Java's processor does."""
    with EventHubsEmulator({"orders": 2}) as emulator:
        program.connect(emulator.connection_string, "orders")

        def next_one(number):
            program.ask("send", partition_id="0", events=events(1))
            receiver = f"from {number}" if program.sdk == "java" else "from 0"
            return receive(program, receiver, "0", sequence_number=number, is_inclusive=True)

        received = next_one(0)
        emulator.drop_connections()
        received += next_one(1)
        emulator.stop()
        emulator.start()
        received += next_one(2)

    assert numbers(received) == [0, 1, 2]


@pytest.mark.long
@pytest.mark.parametrize("over", ["tcp", "web_socket"])
@pytest.mark.parametrize("sdk", SDKS)
def test_the_client_connects_over_tls(sdk, over, tmp_path, monkeypatch):
    """Over TCP and over WebSockets, to an endpoint of its own, with a CA of its own."""
    tls = certificates_in(tmp_path)
    authority = x509.load_pem_x509_certificate(tls.ca.read_bytes())
    trusted = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(authority, b"ca")], BestAvailableEncryption(b"secret")
    )
    (tmp_path / "trusted.p12").write_bytes(trusted)
    store = "javax.net.ssl.trustStore"
    options = (f"-D{store}={tmp_path / 'trusted.p12'}", f"-D{store}Password=secret")
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.ca))  # of Go's WebSockets

    with (
        EventHubsEmulator(
            {"orders": 2}, certificate=tls.certificate, key=tls.key, websocket_port=0
        ) as emulator,
        ForeignClient(sdk, *options) as client,
    ):
        port = emulator.port if over == "tcp" else emulator.websocket_port
        scheme = "https://" if sdk == "java" else ""
        path = f"wss://127.0.0.1:{emulator.websocket_port}/$servicebus/websocket"
        client.connect(
            emulator.connection_string,
            "orders",
            endpoint=f"{scheme}127.0.0.1:{port}",
            ca=str(tls.ca),
            web_socket=path if over == "web_socket" else None,
        )
        client.ask("send", partition_id="1", events=events(3))
        received = receive(client, "tls", "1", 3)
        described = client.ask("hub")

    assert numbers(received) == [0, 1, 2]
    assert described["partition_ids"] == ["0", "1"]


@pytest.mark.long
def test_gos_client_connects_over_websockets_without_tls():
    """Java's client always uses TLS on a WebSocket."""
    with EventHubsEmulator({"orders": 2}, websocket_port=0) as emulator, ForeignClient("go") as go:
        path = f"ws://127.0.0.1:{emulator.websocket_port}/$servicebus/websocket"
        go.connect(emulator.connection_string, "orders", web_socket=path)
        go.ask("send", partition_id="1", events=events(1))

        assert numbers(receive(go, "plain", "1")) == [0]
